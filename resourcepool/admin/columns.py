"""The columns of a list of resources."""

import datetime
from typing import Any

from django.contrib import admin
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.generic import Admin
from resourcepool.admin.paging import CappedList
from resourcepool.admin.words import left
from resourcepool.resources.models import AbstractResource
from resourcepool.resources.state import state_of
from resourcepool.stats.holdings import beginnings, origin


class ResourceList(CappedList):
    """A page of resources, each with the beginning of its running lease: one query for all of them."""

    def get_results(self, request: Any) -> None:
        """Find the rows of this page."""
        super().get_results(request)
        note_beginnings(self.model, self.result_list)


def note_beginnings(model: Any, resources: Any) -> None:
    """Set ``begun`` on each of ``resources``: the event of the acquisition of its running lease, or None."""
    held = [(one.pk, one.fence) for one in resources if one.holder and one.busy_before > one.db_now]
    begun = beginnings(model, held)
    for one in resources:
        one.begun = begun.get((str(one.pk), one.fence))


class Columns(Admin):
    """They judge by the database's clock, which each row brings along as ``db_now``."""

    list_display: tuple[str, ...] = (
        *("__str__", "state", "holder", "on_host", "since", "expires_in", "fence", "last_check", "tags"),
    )

    @admin.display(description=_("state"))
    def state(self, resource: AbstractResource) -> str:
        """Show what the resource is doing now."""
        now = getattr(resource, "db_now", None)
        if now is None:
            return ""
        state = state_of(resource, now)
        return format_html('<span class="resourcepool-state {}">{}</span>', state.value, state.label)

    @admin.display(description=_("host"))
    def on_host(self, resource: AbstractResource) -> str:
        """Show where the holder runs, as the history or its name tells."""
        if not self._is_busy(resource):
            return ""
        begun = getattr(resource, "begun", None)
        return (begun.host if begun else "") or origin(resource.holder)[0]

    @admin.display(description=_("since"))
    def since(self, resource: AbstractResource) -> datetime.datetime | None:
        """Show when the running lease began, as the history tells."""
        begun = getattr(resource, "begun", None)
        return begun.at if begun else None

    @admin.display(description=_("expires in"), ordering="busy_before")
    def expires_in(self, resource: AbstractResource) -> str:
        """Show how long the lease, cool-down or quarantine still lasts, unless it is renewed."""
        return left(resource.busy_before, resource.db_now) if self._is_busy(resource) else ""  # type: ignore[attr-defined]

    @admin.display(description=_("last check"), ordering="verdict")
    def last_check(self, resource: AbstractResource) -> str:
        """Show what the last check found."""
        return resource.get_verdict_display()

    def _is_busy(self, resource: AbstractResource) -> bool:
        now = getattr(resource, "db_now", None)
        return now is not None and resource.busy_before > now
