"""One leased row for each election: whoever holds it leads, and the fence is the number of the term."""

import json
from typing import ClassVar

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext_lazy as _

from resourcepool.database.where import ANYWHERE, Where
from resourcepool.dialect import KeyField
from resourcepool.leases.models import AbstractLease
from resourcepool.leases.table import table_of
from resourcepool.leases.verbs import key

MAX_NAME = 200


def selector(name: str) -> str:
    """Return what a ticket says of one that waits to lead in the election ``name``."""
    return json.dumps({"name": name})


class AbstractElection(AbstractLease):
    """An election, found by its name. A model of one's own keeps what a leader has to know or leaves behind."""

    is_told: ClassVar[bool] = False

    name = KeyField(_("name"), max_length=MAX_NAME, primary_key=True)
    elected_at = models.DateTimeField(_("elected at"), null=True, editable=False)
    elected_term = models.BigIntegerField(
        default=0, editable=False, help_text=_("The term that began then: it is written just after the claim.")
    )

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return str(self.name)

    @classmethod
    def where(cls, selector: str, connection: BaseDatabaseWrapper) -> Where:
        """Return the condition for the one row that a ticket's ``selector`` names."""
        if not (wanted := json.loads(selector)):
            return ANYWHERE
        return Where(
            f" AND {table_of(connection, cls).pk} = %s", (key(connection, cls, wanted.get("name", "")),)
        )


class Leadership(AbstractElection):
    """The election of whoever does what its name says: ``Election("reports")``."""

    class Meta:
        verbose_name = _("election")
        verbose_name_plural = _("elections")
