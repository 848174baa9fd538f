"""Admin pages of channels, messages and subscriptions."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from resourcepool.admin.base import ExactSearchMixin, ReadOnlyAdmin
from resourcepool.admin.columns import lines
from resourcepool.admin.containers import ContainerAdmin
from resourcepool.admin.events import ActivityAdminMixin
from resourcepool.admin.filters import choice_filter, text_filter
from resourcepool.admin.operations_mixin import OperationsAdminMixin
from resourcepool.locks.channels.models import Channel as ChannelRow, Message as MessageRow, Subscription
from resourcepool.operations import Operation
from resourcepool.operations.locks import MOVE, PRUNE, REMOVE_CHANNEL, REMOVE_SUBSCRIPTION
from resourcepool.operations.operation import by_name
from resourcepool.status.badge import HAS_READER, NO_READER, Level
from resourcepool.status.locks.channels import MAX_SUBSCRIPTIONS_SHOWN, SYSTEM
from resourcepool.status.times import duration
from resourcepool.translation import gettext, gettext_lazy as _

ChannelFilter = text_filter("channel", _("channel"))
StatusFilter = choice_filter(
    "status",
    _("status"),
    [("durable", _("durable")), ("unread", _("no reader"))],
    lambda rows, which: rows.durable() if which == "durable" else rows.available(),
)


@admin.register(ChannelRow)
class ChannelAdmin(ContainerAdmin):
    settings = ("kept", "kept_count")
    work_title = _("Subscriptions, the furthest behind first")
    more_facts = ("last", "behind")
    system = SYSTEM
    operations = by_name(PRUNE, REMOVE_CHANNEL)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # removing is an operation

    def can_offer(self, operation: Operation, row: Any) -> bool:
        has_no_messages = hasattr(row, "status") and not row.status.kept
        return super().can_offer(operation, row) and not (operation is PRUNE and has_no_messages)

    def first_work(self, row: Any, work: Any) -> Any:
        return work.durable().order_by("cursor", "pk")

    @admin.display(description=_("furthest behind"))
    def behind(self, row: Any) -> str:
        """Return the durable subscriptions that are furthest behind."""
        behind = [one for one in row.status.subscriptions[:MAX_SUBSCRIPTIONS_SHOWN] if one.unread]
        texts = [f"{one.name or '?'}: {one.unread:,} ({duration(one.behind)})" for one in behind]
        return lines(*(texts or [""]))


@admin.register(MessageRow)
class MessageAdmin(ReadOnlyAdmin):
    """Messages, the newest first."""

    list_display = ("number", "channel", "published_at", "publisher")
    fields = ("channel", "number", "payload", "published_at", "publisher")
    list_filter = (ChannelFilter,)


@admin.register(Subscription)
class SubscriptionAdmin(ExactSearchMixin, ActivityAdminMixin, ReadOnlyAdmin, OperationsAdminMixin):
    """Durable subscriptions and unnamed subscribers."""

    list_display = (
        *("shown_name", "channel", "status_badge", "is_durable", "cursor", "unread", "missed", "holder"),
    )
    fields = ("name", *list_display[1:], "fence")
    list_filter = (ChannelFilter, StatusFilter)
    list_select_related = ("channel",)
    search_fields = ("name",)
    search_help_text = _("Exact name of a subscription.")
    actions = ()
    operations = by_name(MOVE, REMOVE_SUBSCRIPTION)
    time_annotations = {"micros_left": "busy_before"}

    @admin.display(description=_("name"))
    def shown_name(self, row: Any) -> str:
        """Return its name; the name of an unnamed subscriber is random."""
        return row.name if row.is_durable else gettext("unnamed")

    @admin.display(description=_("status"))
    def status_badge(self, row: Any) -> str:
        unread = NO_READER._replace(level=Level.BAD) if _unread(row) else NO_READER
        return (HAS_READER if row.micros_left > 0 else unread).html

    @admin.display(description=_("unread"))
    def unread(self, row: Any) -> str:
        return f"{_unread(row):,}" if row.is_durable else ""


def _unread(row: Any) -> int:
    """Return the number of unread messages of a durable subscription."""
    return max(0, row.channel.last - row.cursor) if row.is_durable else 0
