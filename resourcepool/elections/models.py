"""The models of elections: a leased row each, whose holder leads and whose fence is the number of the term."""

import json
from itertools import filterfalse
from typing import Any, ClassVar

from django.apps import apps
from django.core.exceptions import ValidationError
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import options
from resourcepool.db.dialect import KeyField
from resourcepool.db.dialect.statement import ANY_ROW, Where
from resourcepool.exceptions import BadOption
from resourcepool.leases.models import AbstractLease, inherited_from, table_of
from resourcepool.leases.statements import key
from resourcepool.translation import gettext_lazy as _, gettext_noop

MAX_NAME = 200


def selector(name: str) -> str:
    """Return the selector of tickets for the election ``name``."""
    return json.dumps({"name": name})


def election_models() -> list[type["AbstractElection"]]:
    """Return the election models with history, sorted by label."""
    models = [
        model for model in apps.get_models() if issubclass(model, AbstractElection) and model.emits_events
    ]
    return sorted(filterfalse(inherited_from, models), key=lambda model: model._meta.label_lower)


class AbstractElection(AbstractLease):
    """The base class of election models. Your own model can store data of the leaders."""

    name = KeyField(_("name"), max_length=MAX_NAME, primary_key=True)
    elected_at = models.DateTimeField(_("elected at"), null=True, editable=False)
    elected_term = models.BigIntegerField(
        default=0, editable=False, help_text=_("The term that began then; written just after the claim.")
    )
    resigned_term = models.BigIntegerField(
        default=0,
        editable=False,
        help_text=_("The last term that was resigned; recorded only with a lock-delay."),
    )

    # ``save`` writes these only if ``update_fields`` has them: the instance may be outdated.
    written_by_leaders: ClassVar[frozenset[str]] = frozenset({"elected_at", "elected_term", "resigned_term"})

    class Meta:
        abstract = True

    def clean(self) -> None:
        """Require a name of one printable line."""
        try:
            options.text("name", self.name, most=MAX_NAME)
        except BadOption:
            message = _("One line of at most %(most)d printable characters.") % {"most": MAX_NAME}
            raise ValidationError({"name": message}) from None

    def _may_write(self, name: str, value: Any, *, by_name: bool) -> bool:
        if name in self.written_by_leaders and not by_name:
            return False
        return super()._may_write(name, value, by_name=by_name)

    def __str__(self) -> str:
        return str(self.name)

    @classmethod
    def where(cls, selector: str, connection: BaseDatabaseWrapper) -> Where:
        """Return the condition for the row in a ticket's ``selector``."""
        if not (criteria := json.loads(selector)):
            return ANY_ROW
        return Where(
            f" AND {table_of(connection, cls).pk} = %s", (key(connection, cls, criteria.get("name", "")),)
        )


class Election(AbstractElection):
    """The default model of ``Election``."""

    none_yet = gettext_noop("an election; none exists yet: the first campaign creates it")

    class Meta:
        verbose_name = _("election")
        verbose_name_plural = _("elections")
