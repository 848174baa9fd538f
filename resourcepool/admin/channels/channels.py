"""Channels in the admin: what is kept, and who reads."""

from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.queues.links import to_list
from resourcepool.admin.resources.columns import lines
from resourcepool.admin.streams.places import PlaceAdmin
from resourcepool.locks.channels.models import Broadcast, BroadcastMessage, Subscription
from resourcepool.operations.channels import PRUNE, REMOVE_CHANNEL
from resourcepool.operations.operation import by_name
from resourcepool.status.channels import LISTED, ChannelStatus, channels
from resourcepool.status.durations import duration
from resourcepool.templatetags.resourcepool_dashboard import commands

SETTINGS = ("kept", "kept_count")
STANDING = ("standing", "messages", "readers", "behind")


@admin.register(Broadcast)
class BroadcastAdmin(PlaceAdmin):
    """Settings are edited; the first message or subscriber makes a channel."""

    list_display = ("name", *STANDING)
    search_fields = ("name",)
    ordering = ("name",)
    fields: ClassVar[Any] = ("name", *SETTINGS, *STANDING)
    readonly_fields = ("name", *STANDING)
    operations = by_name(PRUNE, REMOVE_CHANNEL)
    settings, work = SETTINGS, Subscription
    read = staticmethod(channels)

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Tell that nobody may."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell that nobody may: removing is an operation."""
        return False

    @admin.display(description=_("standing"))
    def standing(self, row: Any) -> str:
        """Show whether somebody lags behind."""
        status: ChannelStatus = self.status_of(row)
        css, text = ("quarantined", gettext("lags")) if status.because else ("free", gettext("at work"))
        return lines(
            format_html('<span class="resourcepool-state {}">{}</span>', css, text), commands(status.because)
        )

    @admin.display(description=_("messages"))
    def messages(self, row: Any) -> str:
        """Show how many are kept, with a link to them, and how many the last minute brought."""
        status: ChannelStatus = self.status_of(row)
        kept = to_list(self.admin_site, BroadcastMessage, f"{status.kept:,}", channel=row.name)
        told = gettext("%(count)d in the last minute, the newest is number %(last)d")
        return lines(kept, told % {"count": status.published, "last": status.last})

    @admin.display(description=_("readers"))
    def readers(self, row: Any) -> str:
        """Show how many read with and without a name."""
        status: ChannelStatus = self.status_of(row)
        count = len(status.subscriptions)
        text = ngettext("%d durable subscription", "%d durable subscriptions", count) % count
        named = to_list(self.admin_site, Subscription, text, channel=row.name, standing="durable")
        return lines(named, gettext("%d without a name") % status.listeners)

    @admin.display(description=_("to read"))
    def behind(self, row: Any) -> str:
        """Show the durable subscriptions that are furthest behind."""
        status: ChannelStatus = self.status_of(row)
        behind = [one for one in status.subscriptions[:LISTED] if one.unread]
        told = [f"{one.name or '?'}: {one.unread:,} ({duration(one.behind)})" for one in behind]
        return lines(*(told or [""]))
