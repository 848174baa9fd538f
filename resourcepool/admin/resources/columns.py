"""The columns of a list of resources, and lines of the page of one."""

from typing import Any

from django.contrib import admin
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from resourcepool.admin import words
from resourcepool.admin.countdown import countdown
from resourcepool.admin.generic import Admin
from resourcepool.events import shown
from resourcepool.resources.models import AbstractResource
from resourcepool.resources.state import Standing, State, Status, standing_of, state_of
from resourcepool.status.durations import duration
from resourcepool.status.holders import beginnings, origin


class Columns(Admin):
    """They judge by the database's clock, which each row brings along as ``db_now``."""

    list_display: tuple[str, ...] = ("named", "standing", "held_by", "since", "expires_in", "fence", "labels")

    def note(self, rows: Any) -> None:
        """Set ``begun`` on each: the event of the acquisition of its running lease, or None."""
        held = [(one.pk, one.fence) for one in rows if one.holder and one.busy_before > one.db_now]
        begun = beginnings(self.model, held)
        for one in rows:
            one.begun = begun.get((str(one.pk), one.fence))

    @admin.display(description=_("resource"))
    def named(self, resource: AbstractResource) -> str:
        """Show its key, by which logs, events and commands speak of it, and its name."""
        return words.named(resource)

    @admin.display(description=_("state"))
    def state(self, resource: AbstractResource) -> str:
        """Show what the resource is doing now."""
        now = getattr(resource, "db_now", None)
        if now is None:
            return ""
        state = state_of(resource, now)
        return format_html('<span class="resourcepool-state {}">{}</span>', state.value, state.label)

    @admin.display(description=_("state"))
    def standing(self, resource: AbstractResource) -> str:
        """Show the state, what comes after the lease, and what the last check found."""
        verdict = resource.get_verdict_display() if resource.verdict else ""
        now = getattr(resource, "db_now", None)
        is_draining = now is not None and state_of(resource, now) is State.DRAINING
        after = words.after_its_lease(resource) if is_draining else ""
        return lines(self.state(resource), after, gettext("check: %s") % verdict if verdict else "")

    @admin.display(description=_("holder or reason"))
    def held_by(self, resource: AbstractResource) -> str:
        """Show who has it and on which host, as the history or its name tells; and why it was put away."""
        now = getattr(resource, "db_now", None)
        reason = standing_of(resource, now).reason if now else ""
        return lines(resource.holder, self._place(resource), shown(reason))

    @admin.display(description=_("since"))
    def since(self, resource: AbstractResource) -> str:
        """Show when the running lease began, as the history tells."""
        begun = getattr(resource, "begun", None)
        if begun is None:
            return ""
        passed = (resource.db_now - begun.at).total_seconds()  # type: ignore[attr-defined]
        return lines(duration(max(0.0, passed)), words.short_moment(begun.at, resource.db_now))  # type: ignore[attr-defined]

    @admin.display(description=_("expires in"), ordering="busy_before")
    def expires_in(self, resource: AbstractResource) -> str:
        """Show how long the lease, cool-down or quarantine still lasts, unless it is renewed."""
        if not self._is_busy(resource):
            return ""
        left = (resource.busy_before - resource.db_now).total_seconds()  # type: ignore[attr-defined]
        return countdown(left, "%s", gettext("over, or renewed") if resource.holder else gettext("over"))

    @admin.display(description=_("tags"))
    def labels(self, resource: AbstractResource) -> str:
        """Show what it is chosen by."""
        return str(resource.tags).strip()

    def _place(self, resource: AbstractResource) -> str:
        if not resource.holder:
            return ""
        if not self._is_busy(resource):
            return gettext("ran out, was not released")
        begun = getattr(resource, "begun", None)
        return (begun.host if begun else "") or origin(resource.holder)[0]

    def _is_busy(self, resource: AbstractResource) -> bool:
        now = getattr(resource, "db_now", None)
        return now is not None and resource.busy_before > now


def lines(first: str, *rest: str) -> SafeString:
    """Return these one below the other, those after the first in small print; the empty ones are left out."""
    small = format_html_join("", "<small>{}</small>", ((line,) for line in rest if line))
    return (
        format_html('{}<span class="resourcepool-small">{}</span>', first, small)
        if small
        else format_html("{}", first)
    )


# Lines of a resource's page that say only what still holds: of a quarantine that is over, the row keeps the reason.


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
    return words.moment(now.until) if now and now.until else ""


def _standing(resource: Any) -> Standing | None:
    """Return how it stands by the database's clock, which a row that is just being added has not."""
    now = getattr(resource, "db_now", None)
    return None if now is None else standing_of(resource, now)
