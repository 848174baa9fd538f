"""The columns of the list of resources, and lines of the page of a resource."""

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.utils.html import format_html

from resourcepool.admin.base import BaseAdmin
from resourcepool.admin.columns import countdown, joined, key_and_name, lines
from resourcepool.events import localized
from resourcepool.resources.state import State, StateDetails, Status, state_details
from resourcepool.status.badge import resource_badge
from resourcepool.status.resources.holders import acquisitions, changes_of_status, host_and_pid, renewal
from resourcepool.status.times import duration, format_short_datetime
from resourcepool.translation import gettext, gettext_lazy as _

# The status of a draining resource after its lease, if other than out of service.
AFTER_LEASE = {
    Status.RESERVED: _("reserved after its lease"),
    Status.QUARANTINED: _("quarantined after its lease"),
    Status.RETIRED: _("retired after its lease"),
}
MAX_UNBROKEN = 48  # characters of a key and a name that is never broken


class ResourceColumnsMixin(BaseAdmin):
    """The columns of resources. They use the database's clock, ``row.db_now``."""

    list_display: tuple[str, ...] = ("named", "status_badge", "held_by", "labels")

    def load_column_values(self, rows: Any) -> None:
        """Set on each row ``begun``, the event that began its lease, and ``taken_out``, that of its status; or None."""
        held = [(row.pk, row.fence) for row in rows if row.holder and _is_busy(row)]
        out = [(row.pk, row.fence) for row in rows if row.status != Status.IN_SERVICE]
        begun, taken_out = acquisitions(self.model, held), changes_of_status(self.model, out)
        for row in rows:
            row.begun = begun.get((str(row.pk), row.fence))
            row.taken_out = taken_out.get(str(row.pk))

    @admin.display(description=_("resource"))
    def named(self, resource: Any) -> str:
        """Show its key and its name; an address is not broken."""
        text = key_and_name(resource)
        css = "resourcepool-address" if len(text) <= MAX_UNBROKEN else ""
        return format_html('<span class="{}">{}</span>', css, text)

    @admin.display(description=_("state"))
    def state(self, resource: Any) -> str:
        return resource_badge(_state_details(resource).state).html

    @admin.display(description=_("state"))
    def status_badge(self, resource: Any) -> str:
        is_draining = _state_details(resource).state is State.DRAINING
        after = AFTER_LEASE.get(resource.status, "") if is_draining else ""
        check = gettext("check: %s") % resource.get_verdict_display() if resource.verdict else ""
        return lines(self.state(resource), str(after), check)

    @admin.display(description=_("holder, or why and until when"), ordering="busy_before")
    def held_by(self, resource: Any) -> str:
        """Show the holder, its host, since when, and until when; or who took it out of service, why, and until when."""
        begun, ends = joined(*self._begun(resource)), joined(*self._ends(resource))
        return lines(resource.holder if _is_held(resource) else "", begun, ends)

    def _begun(self, resource: Any) -> Iterator[str]:
        if resource.holder and not _is_busy(resource):
            yield gettext("%s: expired, not released") % resource.holder
        elif resource.holder:
            begun = resource.begun
            host = (begun.host if begun else "") or host_and_pid(resource.holder)[0]
            yield "" if resource.holder.startswith(f"{host}/") else host
            yield _since(resource, begun) if begun else ""

    def _ends(self, resource: Any) -> Iterator[str]:
        if _is_busy(resource):
            left = (resource.busy_before - resource.db_now).total_seconds()
            text = gettext("expires in %s") if resource.holder else gettext("ends in %s")
            over = gettext("expired or renewed") if resource.holder else gettext("over")
            yield countdown(left, text, over)
        elif until := _state_details(resource).until:
            yield gettext("until %s") % format_short_datetime(until, resource.db_now)
        if _is_held(resource):
            yield from _overdue(resource)
        yield _reason(resource)

    @admin.display(description=_("tags"))
    def labels(self, resource: Any) -> str:
        return str(resource.tags).strip()


def _is_busy(resource: Any) -> bool:
    return bool(resource.busy_before > resource.db_now)


def _state_details(resource: Any) -> StateDetails:
    return state_details(resource, resource.db_now)


def _is_held(resource: Any) -> bool:
    return bool(resource.holder) and _is_busy(resource)


def _since(resource: Any, begun: Any) -> str:
    seconds = max(0.0, (resource.db_now - begun.at).total_seconds())
    values = {"time": duration(seconds), "at": format_short_datetime(begun.at, resource.db_now)}
    return gettext("for %(time)s, since %(at)s") % values


def _overdue(resource: Any) -> Iterator[str]:
    """Yield that its holder should have renewed it."""
    left = (resource.busy_before - resource.db_now).total_seconds()
    last = renewal(resource.begun.ttl if resource.begun else None, left)
    if last and last.is_overdue:
        yield gettext("renewal overdue")


def _reason(resource: Any) -> str:
    """Return why it is out of service, and by whom; the row keeps the reason of a quarantine that is over."""
    reason = localized(_state_details(resource).reason)
    if not reason or resource.taken_out is None:
        return reason
    return gettext("by %(who)s: %(reason)s") % {"who": resource.taken_out.actor, "reason": reason}
