"""What the surfaces show of channels."""

from resourcepool.locks.channels.models import Message as MessageRow, Subscription
from resourcepool.status.alarm import ABOUT_CHANNELS, AlarmKind
from resourcepool.status.channels import CHANNELS, channel_alarms
from resourcepool.status.sections import LOCKS
from resourcepool.status.system import NamedSystem, Panel, RowList, count, seconds, text
from resourcepool.translation import gettext_lazy as _, gettext_noop

DURABLE = RowList("durable", Subscription, {"status": "durable"})
SYSTEM = NamedSystem(
    details=(Subscription,),
    reader=CHANNELS,
    figures=(
        text(_("channel"), "name"),
        count(_("last"), "last", gauge=("last_number", "The number of the newest message."), heading=""),
        count("", "published", heading=_("Published per minute")),
        count(_("kept"), "kept", RowList("messages", MessageRow, {})),
        count(_("published/min"), "published", heading=""),
        count(_("unnamed"), "listeners"),
        count(_("durable"), lambda one: len(one.subscriptions), DURABLE),
        count(
            _("unread"),
            "unread",
            gauge=("unread_messages", "Unread messages of the subscription that is furthest behind."),
            heading=_("Unread"),
        ),
    ),
    parts=(
        "subscriptions",
        (
            text(_("subscription"), "name"),
            count(_("cursor"), "cursor"),
            count(_("unread"), "unread"),
            seconds(_("oldest unread"), lambda one: one.behind or None),
            count(_("removed"), "lost"),
            count(_("missed"), "missed"),
            text(_("read by"), "holder"),
        ),
    ),
    none_yet=gettext_noop("No channels yet: the first message creates its channel."),
    alarms=lambda statuses, limits: channel_alarms(statuses, limits.unread),
    section=LOCKS,
    subject=ABOUT_CHANNELS,
    alarm_lists={None: DURABLE},
    alarm_operations={AlarmKind.MISSED_MESSAGES: ("move",), AlarmKind.LAGGING: ("move", "remove")},
    panel=Panel(
        _("Channels"),
        _("messages to all subscribers"),
        order=40,
        id_prefix="rpc",
        css="rp-topics",
        details=Subscription,
    ),
)
