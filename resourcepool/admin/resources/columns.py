"""The columns of a list of resources, and lines of the page of one."""

from typing import Any

from django.contrib import admin
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from resourcepool.admin import describe
from resourcepool.admin.base import BaseAdmin
from resourcepool.admin.columns import badge, countdown, format_datetime, format_short_datetime, lines
from resourcepool.events import localized
from resourcepool.resources.state import State, StateDetails, Status, state_details
from resourcepool.status.holders import acquisitions, host_and_pid
from resourcepool.status.snapshots import duration


class Columns(BaseAdmin):
    """They judge by the database's clock: ``db_now`` of each row, which one that is being added has not."""

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
        """Set ``begun`` on each row: the event that began its running lease, or None."""
        held = [(one.pk, one.fence) for one in rows if one.holder and _is_busy(one)]
        begun = acquisitions(self.model, held)
        for one in rows:
            one.begun = begun.get((str(one.pk), one.fence))

    @admin.display(description=_("resource"))
    def named(self, resource: Any) -> str:
        return describe.named(resource)

    @admin.display(description=_("state"))
    def state(self, resource: Any) -> str:
        now = _standing(resource)
        return badge(now.state.value, str(now.state.label)) if now else ""

    @admin.display(description=_("state"))
    def status_badge(self, resource: Any) -> str:
        now = _standing(resource)
        after = describe.AFTER_ITS_LEASE.get(resource.status, "") if now and now.state is State.DRAINING else ""
        check = gettext("check: %s") % resource.get_verdict_display() if resource.verdict else ""
        return lines(self.state(resource), str(after), check)

    @admin.display(description=_("holder or reason"))
    def held_by(self, resource: Any) -> str:
        """Show who has it and on which host, as the history or its name tells; and why it was put away."""
        place = ""
        if resource.holder and not _is_busy(resource):
            place = gettext("ran out, was not released")
        elif resource.holder:
            begun = getattr(resource, "begun", None)
            place = (begun.host if begun else "") or host_and_pid(resource.holder)[0]
        return lines(resource.holder, place, reason(resource))

    @admin.display(description=_("since"))
    def since(self, resource: Any) -> str:
        begun = getattr(resource, "begun", None)
        if begun is None:
            return ""
        passed = (resource.db_now - begun.at).total_seconds()
        return lines(duration(max(0.0, passed)), format_short_datetime(begun.at, resource.db_now))

    @admin.display(description=_("expires in"), ordering="busy_before")
    def expires_in(self, resource: Any) -> str:
        """Show how long the lease, cool-down or quarantine still lasts, unless it is renewed."""
        if not _is_busy(resource):
            return ""
        left = (resource.busy_before - resource.db_now).total_seconds()
        return countdown(left, "%s", gettext("over, or renewed") if resource.holder else gettext("over"))

    @admin.display(description=_("tags"))
    def labels(self, resource: Any) -> str:
        return str(resource.tags).strip()


def _is_busy(resource: Any) -> bool:
    now = getattr(resource, "db_now", None)
    return now is not None and resource.busy_before > now


def _standing(resource: Any) -> StateDetails | None:
    now = getattr(resource, "db_now", None)
    return None if now is None else state_details(resource, now)


# Lines of a resource's page that say only what still holds: of a quarantine that is over, the row keeps the reason.


@admin.display(description=_("status"))
def status(resource: Any) -> str:
    now = _standing(resource)
    return str(Status(now.status).label) if now else ""


@admin.display(description=_("reason"))
def reason(resource: Any) -> str:
    now = _standing(resource)
    return localized(now.reason) if now else ""


@admin.display(description=_("until"))
def until(resource: Any) -> str:
    now = _standing(resource)
    return format_datetime(now.until) if now and now.until else ""
