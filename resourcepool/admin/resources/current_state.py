"""Lines of a resource's page that say only what still holds: of a quarantine that is over, the row keeps the reason."""

from typing import Any

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.words import moment
from resourcepool.events import shown
from resourcepool.resources.state import Standing, Status, standing_of


@admin.display(description=_("status"))
def status(resource: Any) -> str:
    """Show why it is where it is."""
    now = _standing(resource)
    return str(Status(now.status).label) if now else ""


@admin.display(description=_("reason"))
def reason(resource: Any) -> str:
    """Show what was said when it was put away."""
    now = _standing(resource)
    return shown(now.reason) if now else ""


@admin.display(description=_("until"))
def until(resource: Any) -> str:
    """Show for how long it is put away."""
    now = _standing(resource)
    return moment(now.until) if now and now.until else ""


def _standing(resource: Any) -> Standing | None:
    """Return how it stands by the database's clock, which a row that is just being added has not."""
    now = getattr(resource, "db_now", None)
    return None if now is None else standing_of(resource, now)
