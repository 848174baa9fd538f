"""Subscriptions in the admin: who reads, how far it is, and its cursor, which can be moved."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.filters import choice, typed
from resourcepool.admin.generic import ByWholeName, ReadOnlyAdmin
from resourcepool.admin.streams.asking import AskingByRows
from resourcepool.admin.timeline import Timelined
from resourcepool.dialect import MicrosUntil
from resourcepool.locks.channels.models import Subscription
from resourcepool.operations.channels import MOVE, REMOVE
from resourcepool.operations.operation import by_name

ChannelFilter = typed("channel", _("channel"), _("its name"), lambda rows, text: rows.filter(channel_id=text))
StandingFilter = choice(
    "standing",
    _("standing"),
    [("durable", _("durable")), ("unread", _("nobody reads it"))],
    lambda rows, which: rows.durable() if which == "durable" else rows.available(),
)


@admin.register(Subscription)
class SubscriptionAdmin(ByWholeName, Timelined, ReadOnlyAdmin, AskingByRows):
    """One row for each durable subscription, and for each process that reads without a name."""

    list_display = ("called_here", "channel", "standing", "is_durable", "cursor", "unread", "missed", "holder")
    fields = ("name", *list_display[1:], "fence")
    list_filter = (ChannelFilter, StandingFilter)
    search_fields = ("name",)
    search_help_text = _("The whole name of a subscription.")
    actions = ()
    operations = by_name(MOVE, REMOVE)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the subscriptions, each with what is left of its lease and the newest number of its channel."""
        found = super().get_queryset(request).select_related("channel")
        rows: QuerySet[Any] = found.annotate(db_left=MicrosUntil("busy_before"))
        return rows

    @admin.display(description=_("name"))
    def called_here(self, row: Any) -> str:
        """Show its name, unless that is one that a process was given for as long as it reads."""
        return row.name if row.is_durable else gettext("without a name")

    @admin.display(description=_("standing"))
    def standing(self, row: Any) -> str:
        """Show whether somebody reads under this name."""
        css, text = ("leased", gettext("read")) if row.db_left > 0 else ("free", gettext("nobody reads it"))
        return format_html('<span class="resourcepool-state {}">{}</span>', css, text)

    @admin.display(description=_("to read"))
    def unread(self, row: Any) -> str:
        """Show how many messages it has to read."""
        return f"{max(0, row.channel.last - row.cursor):,}" if row.is_durable else ""
