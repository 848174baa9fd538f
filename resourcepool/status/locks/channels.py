"""The status of channels: kept messages, readers, and lagging durable subscriptions."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Case, Count, OuterRef, Q, Subquery, When

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.locks.channels.models import Channel as ChannelRow, Message as MessageRow, Subscription
from resourcepool.status.alarm import ABOUT_CHANNELS, Alarm, AlarmKind, about_row
from resourcepool.status.badge import NO_READER, WORKING, Badge, Level, first_badge
from resourcepool.status.snapshots import Since
from resourcepool.status.status_reader import RECENT, ReasonsMixin, StatusReader
from resourcepool.status.system import LOCKS, NamedSystem, Panel, RowList, count, seconds, text
from resourcepool.status.times import duration
from resourcepool.translation import gettext, gettext_lazy as _, gettext_noop

MAX_SUBSCRIPTIONS = 2_000  # durable, the furthest behind
MAX_SUBSCRIPTIONS_SHOWN = 5

LOSING = Badge(Level.BAD, "losing", _("losing messages"))
LAGGING = Badge(Level.BAD, "lagging", _("lagging"))
QUIET = Badge(Level.IDLE, "quiet", _("no new messages"))


@dataclass(frozen=True, slots=True)
class SubscriptionStatus:
    """The status of a durable subscription.

    Attributes:
        name: "" for users who may not see subscriptions.
        holder: the reader; "" if none.
        cursor: number of the last message that is done.
        unread: number of unread messages, including removed ones. ``lost``: number of removed ones.
        behind: age of the oldest unread message, in seconds.
        missed: number of messages reported as missed so far.
        pk: its primary key; None for users who may not see subscriptions.
    """

    name: str
    holder: str
    cursor: int
    unread: int
    behind: float
    lost: int
    missed: int
    pk: int | None = None


@dataclass(frozen=True, slots=True)
class ChannelStatus(ReasonsMixin):
    """The status of one channel.

    Attributes:
        last: number of its newest message.
        kept: number of kept messages. ``published``: messages of the last minute.
        listeners: number of unnamed subscribers.
        subscriptions: durable subscriptions, the furthest behind first.
    """

    name: str
    last: int
    kept: int
    published: int
    listeners: int
    subscriptions: tuple[SubscriptionStatus, ...]

    ALSO = ("unread", "status", "explanation")

    @property
    def unread(self) -> int:
        """Unread messages of the subscription that is furthest behind."""
        return max((subscription.unread for subscription in self.subscriptions), default=0)

    @property
    def badge(self) -> Badge:
        is_read = self.listeners or any(one.holder for one in self.subscriptions)
        states = (
            (any(one.lost for one in self.subscriptions), LOSING),
            (self.explanation, LAGGING),
            (not is_read, NO_READER),
            (self.published, WORKING),
        )
        return first_badge(states, QUIET)

    def reasons(self) -> Iterator[str]:
        for one in self.subscriptions[:MAX_SUBSCRIPTIONS_SHOWN]:
            values = {"name": one.name or "?", "count": one.lost, "unread": one.unread}
            if one.lost:
                yield gettext("messages removed before %(name)s read them: %(count)d") % values
            elif one.unread and not one.holder:
                yield gettext("%(name)s has no reader; unread messages: %(unread)d") % values

    def redacted(self) -> "ChannelStatus":
        """Return it without names and holders, for users who may not see subscriptions."""
        nameless = tuple(replace(one, name="", holder="", pk=None) for one in self.subscriptions)
        return replace(self, subscriptions=nameless)


def channel_alarms(channels: Sequence[ChannelStatus], late: float) -> Iterator[Alarm]:
    """Yield the alarms of these channels; ``late``: seconds that a message may be unread."""
    for channel in channels:
        about = ABOUT_CHANNELS % channel.name
        for one in channel.subscriptions[:MAX_SUBSCRIPTIONS_SHOWN]:
            values, row = (
                {"name": one.name or "?", "late": duration(one.behind)},
                about_row(Subscription, one.pk),
            )
            if one.lost:
                text = gettext("messages removed before subscription %(name)s read them: %(count)d.")
                yield Alarm(AlarmKind.MISSED_MESSAGES, about, text % {**values, "count": one.lost}, **row)
            elif one.behind > late:
                text = gettext(
                    "subscription %(name)s has unread messages: %(unread)d, the oldest for %(late)s."
                )
                yield Alarm(AlarmKind.LAGGING, about, text % {**values, "unread": one.unread}, **row)


def _annotated(channels: Any) -> Any:
    messages = MessageRow.objects.using(channels.db).filter(channel_id=OuterRef("pk"))
    first = messages.order_by("number")
    old = messages.filter(published_at__lt=DbLater(-RECENT)).order_by("-published_at", "-number")
    return channels.annotate(first=Subquery(first.values("number")[:1]), old=Subquery(old.values("number")[:1]))


def _read(connection: BaseDatabaseWrapper, rows: list[Any]) -> list[ChannelStatus]:
    subscriptions = Subscription.objects.using(connection.alias).filter(channel_id__in=[row.pk for row in rows])
    live = subscriptions.filter(is_durable=False, busy_before__gt=DbNow())
    listeners = dict(live.values_list("channel_id").annotate(count=Count("pk")))
    durable = _durable(subscriptions)
    return [_status(row, listeners.get(row.pk, 0), durable[row.pk]) for row in rows]


def _durable(subscriptions: Any) -> dict[str, list[Any]]:
    unread = MessageRow.objects.filter(channel_id=OuterRef("channel_id"), number__gt=OuterRef("cursor"))
    first = Subquery(unread.order_by("number").values("published_at")[:1])
    reads = Case(When(Q(busy_before__gt=DbNow()), then="holder"), default=None)
    rows = subscriptions.durable().annotate(reader=reads, behind=Since(first)).order_by("cursor", "pk")
    by_channel: dict[str, list[Any]] = defaultdict(list)
    for row in rows[:MAX_SUBSCRIPTIONS]:
        by_channel[row.channel_id].append(row)
    return by_channel


def _status(row: Any, listeners: int, subscriptions: Sequence[Any]) -> ChannelStatus:
    first = row.last + 1 if row.first is None else row.first
    recent = first - 1 if row.old is None else row.old
    return ChannelStatus(
        name=row.name,
        last=row.last,
        kept=row.last - first + 1,
        published=row.last - recent,
        listeners=listeners,
        subscriptions=tuple(
            SubscriptionStatus(
                name=one.name,
                holder=one.reader or "",
                cursor=one.cursor,
                unread=max(0, row.last - one.cursor),
                behind=one.behind or 0.0,
                lost=max(0, min(first - 1, row.last) - one.cursor),
                missed=one.missed,
                pk=one.pk,
            )
            for one in subscriptions
        ),
    )


CHANNELS = StatusReader(ChannelRow, _annotated, _read, word="channel")
channels = CHANNELS.named


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
    panel=Panel(_("Channels"), _("messages to all subscribers"), order=40),
)
