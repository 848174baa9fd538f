"""Channels in the admin, their messages and their subscriptions."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.columns import badge, lines, to_list
from resourcepool.admin.filters import choice, typed
from resourcepool.admin.generic import ReadOnlyAdmin, WholeTermSearch
from resourcepool.admin.operated import Operated
from resourcepool.admin.places import PlaceAdmin
from resourcepool.admin.timeline import Timelined
from resourcepool.locks.channels.models import Broadcast, BroadcastMessage, Subscription
from resourcepool.operations.channels import MOVE, PRUNE, REMOVE, REMOVE_CHANNEL
from resourcepool.operations.operation import by_name
from resourcepool.status.channels import LISTED, ChannelStatus, channels
from resourcepool.status.reading import duration

ChannelFilter = typed("channel", _("channel"))
StandingFilter = choice(
    "standing",
    _("standing"),
    [("durable", _("durable")), ("unread", _("nobody reads it"))],
    lambda rows, which: rows.durable() if which == "durable" else rows.available(),
)


@admin.register(Broadcast)
class BroadcastAdmin(PlaceAdmin):
    settings = ("kept", "kept_count")
    figures = ("standing", "messages", "readers", "behind")
    work, place, read = Subscription, "channel", staticmethod(channels)
    operations = by_name(PRUNE, REMOVE_CHANNEL)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # removing is an operation

    def state_of(self, row: Any, status: ChannelStatus) -> tuple[str, str]:
        return ("quarantined", gettext("lags")) if status.because else ("free", gettext("at work"))

    @admin.display(description=_("messages"))
    def messages(self, row: Any) -> str:
        kept = to_list(self.admin_site, BroadcastMessage, f"{row.status.kept:,}", channel=row.name)
        told = gettext("%(count)d in the last minute, the newest is number %(last)d")
        return lines(kept, told % {"count": row.status.published, "last": row.status.last})

    @admin.display(description=_("readers"))
    def readers(self, row: Any) -> str:
        count = len(row.status.subscriptions)
        text = ngettext("%d durable subscription", "%d durable subscriptions", count) % count
        named = self.to_work(row.name, text, standing="durable")
        return lines(named, gettext("%d without a name") % row.status.listeners)

    @admin.display(description=_("to read"))
    def behind(self, row: Any) -> str:
        """Show the durable subscriptions that are furthest behind."""
        behind = [one for one in row.status.subscriptions[:LISTED] if one.unread]
        told = [f"{one.name or '?'}: {one.unread:,} ({duration(one.behind)})" for one in behind]
        return lines(*(told or [""]))


@admin.register(BroadcastMessage)
class BroadcastMessageAdmin(ReadOnlyAdmin):
    """The newest messages first; of one channel with the filter."""

    list_display = ("number", "channel", "published_at", "publisher")
    fields = ("channel", "number", "payload", "published_at", "publisher")
    list_filter = (ChannelFilter,)


@admin.register(Subscription)
class SubscriptionAdmin(WholeTermSearch, Timelined, ReadOnlyAdmin, Operated):
    """One row for each durable subscription, and for each process that reads without a name."""

    list_display = ("called_here", "channel", "standing", "is_durable", "cursor", "unread", "missed", "holder")
    fields = ("name", *list_display[1:], "fence")
    list_filter = (ChannelFilter, StandingFilter)
    list_select_related = ("channel",)
    search_fields = ("name",)
    search_help_text = _("The whole name of a subscription.")
    actions = ()
    operations = by_name(MOVE, REMOVE)
    ages = {"micros_left": "busy_before"}

    @admin.display(description=_("name"))
    def called_here(self, row: Any) -> str:
        """Show its name, unless that is one that a process was given for as long as it reads."""
        return row.name if row.is_durable else gettext("without a name")

    @admin.display(description=_("standing"))
    def standing(self, row: Any) -> str:
        if row.micros_left > 0:
            return badge("leased", gettext("read"))
        return badge("quarantined" if _unread(row) else "draining", gettext("nobody reads it"))

    @admin.display(description=_("to read"))
    def unread(self, row: Any) -> str:
        return f"{_unread(row):,}" if row.is_durable else ""


def _unread(row: Any) -> int:
    """Return how many messages a durable subscription has to read."""
    return max(0, row.channel.last - row.cursor) if row.is_durable else 0
