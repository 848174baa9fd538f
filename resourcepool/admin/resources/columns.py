"""The columns of the list of resources, and lines of the page of a resource."""

from typing import Any

from django.contrib import admin

from resourcepool.admin import describe
from resourcepool.admin.base import BaseAdmin
from resourcepool.admin.columns import badge, countdown, lines
from resourcepool.events import localized
from resourcepool.resources.state import State, StateDetails, Status, state_details
from resourcepool.status.badge import resource_badge
from resourcepool.status.holders import acquisitions, host_and_pid
from resourcepool.status.times import duration, format_datetime, format_short_datetime
from resourcepool.translation import gettext
from resourcepool.translation import gettext_lazy as _


class ResourceColumnsMixin(BaseAdmin):
    """The columns of resources. They use the database's clock, ``row.db_now``, which a row being added lacks."""

    list_display: tuple[str, ...] = (
        "named",
        "status_badge",
        "held_by",
        "since",
        "expires_in",
        "fence",
        "labels",
    )

    def load_column_values(self, rows: Any) -> None:
        """Set ``begun`` on each row: the event that began its current lease, or None."""
        held = [(row.pk, row.fence) for row in rows if row.holder and _is_busy(row)]
        begun = acquisitions(self.model, held)
        for row in rows:
            row.begun = begun.get((str(row.pk), row.fence))

    @admin.display(description=_("resource"))
    def named(self, resource: Any) -> str:
        return describe.key_and_name(resource)

    @admin.display(description=_("state"))
    def state(self, resource: Any) -> str:
        details = _state_details(resource)
        return badge(resource_badge(details.state)) if details else ""

    @admin.display(description=_("state"))
    def status_badge(self, resource: Any) -> str:
        details = _state_details(resource)
        is_draining = details is not None and details.state is State.DRAINING
        after = describe.AFTER_LEASE.get(resource.status, "") if is_draining else ""
        check = gettext("check: %s") % resource.get_verdict_display() if resource.verdict else ""
        return lines(self.state(resource), str(after), check)

    @admin.display(description=_("holder or reason"))
    def held_by(self, resource: Any) -> str:
        """Show the holder and its host, from the history or its name; or why the resource is out of service."""
        host = ""
        if resource.holder and not _is_busy(resource):
            host = gettext("expired, not released")
        elif resource.holder:
            begun = getattr(resource, "begun", None)
            host = (begun.host if begun else "") or host_and_pid(resource.holder)[0]
        return lines(resource.holder, host, reason(resource))

    @admin.display(description=_("since"))
    def since(self, resource: Any) -> str:
        begun = getattr(resource, "begun", None)
        if begun is None:
            return ""
        seconds = (resource.db_now - begun.at).total_seconds()
        return lines(duration(max(0.0, seconds)), format_short_datetime(begun.at, resource.db_now))

    @admin.display(description=_("expires in"), ordering="busy_before")
    def expires_in(self, resource: Any) -> str:
        """Show the remaining time of the lease, cool-down or quarantine."""
        if not _is_busy(resource):
            return ""
        left = (resource.busy_before - resource.db_now).total_seconds()
        return countdown(left, "%s", gettext("expired or renewed") if resource.holder else gettext("over"))

    @admin.display(description=_("tags"))
    def labels(self, resource: Any) -> str:
        return str(resource.tags).strip()


def _is_busy(resource: Any) -> bool:
    now = getattr(resource, "db_now", None)
    return now is not None and resource.busy_before > now


def _state_details(resource: Any) -> StateDetails | None:
    now = getattr(resource, "db_now", None)
    return None if now is None else state_details(resource, now)


# Lines of a resource's page. The row keeps status and reason of a quarantine that is over, so they use the state.


@admin.display(description=_("status"))
def status(resource: Any) -> str:
    details = _state_details(resource)
    return str(Status(details.status).label) if details else ""


@admin.display(description=_("reason"))
def reason(resource: Any) -> str:
    details = _state_details(resource)
    return localized(details.reason) if details else ""


@admin.display(description=_("until"))
def until(resource: Any) -> str:
    details = _state_details(resource)
    return format_datetime(details.until) if details and details.until else ""
