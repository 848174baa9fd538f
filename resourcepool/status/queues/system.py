"""Queue groups as a system: the states of groups and servers, gauges, alarms, and where these link to."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from resourcepool.queues.models import Move, Queue, QueueGroup, Server
from resourcepool.queues.planning.changes import takeover_after
from resourcepool.status.alarm import ABOUT_QUEUES, Alarm, AlarmKind, about_row
from resourcepool.status.badge import PAUSED, WORKING, Badge, Level, first_badge
from resourcepool.status.queues.problems import NORMAL_CHANGES
from resourcepool.status.queues.queue_groups import QueueGroupStatus, ServerStatus, queue_groups
from resourcepool.status.system import QUEUES, RowList, System, count, gauge, text
from resourcepool.status.times import duration
from resourcepool.text import printable
from resourcepool.translation import gettext as _, gettext_lazy

IDLE_HEARTBEATS = 10  # a server may have no queue, or ask for no work, for this long
LATE_HEARTBEATS = 2  # intervals without a heartbeat, or until other servers act on overdue changes


def queue_alarms(queue_groups: Iterable[QueueGroupStatus]) -> Iterator[Alarm]:
    for status in queue_groups:
        yield from _unowned(status)
        yield from _stalled(status)
        yield from _overdue_drains(status)
        yield from stuck_drains(status)
        yield from _flapping(status)
        yield from _idle_servers(status)
        yield from _too_many_servers(status)


def _unowned(status: QueueGroupStatus) -> Iterator[Alarm]:
    limit = status.judge_dead_after + LATE_HEARTBEATS * status.heartbeat_every
    if not status.unowned or status.unowned_for is None or status.unowned_for <= limit:
        return
    if status.alive:
        text = _(
            "servers are running, but queues are unowned: %(count)d, for up to %(ago)s. For example, queue"
            " %(example)s: %(why)s. See %(command)s."
        )
    else:
        text = _("no server is running; unowned queues: %(count)d, for up to %(ago)s. Start a server.")
    values = {"example": printable(status.unowned_one or "?"), "why": status.unowned_why or "?"}
    yield _alarm(
        AlarmKind.UNOWNED, status, text, count=status.unowned, ago=duration(status.unowned_for), **values
    )


def _stalled(status: QueueGroupStatus) -> Iterator[Alarm]:
    stalled = [
        server
        for server in status.alive
        if is_stalled(status, server.queues, server.last_activity, server.in_hand)
    ]
    worst = max(stalled, key=lambda server: server.last_activity or 0.0, default=None)
    if worst is None:
        return
    if worst.in_hand:
        text = _(
            "server %(server)s has started no work for %(ago)s (allowed: %(within)s); queues in hand:"
            " %(count)d. Its work hangs or takes too long. Its heartbeat continues, so no other server takes"
            " over; restart it."
        )
    else:
        text = _(
            "server %(server)s has queues (%(count)d), but its code has not asked for work for %(ago)s: the"
            " code has ended or hangs. Its heartbeat continues, so no other server takes over; restart it."
        )
    limit = _stalled_after(status, worst.in_hand)
    spans = {"ago": duration(worst.last_activity or 0.0), "within": duration(limit)}
    values = {"server": printable(worst), "count": worst.in_hand or worst.queues, **spans}
    yield _alarm(AlarmKind.STALLED, status, text, about_row(Server, worst.pk), **values)


def is_stalled(
    queue_group: QueueGroupStatus | QueueGroup, queues: int, last_activity: float | None, in_hand: int
) -> bool:
    """Return whether the work of a living server hangs; for the arguments see ``ServerStatus``."""
    if queue_group.is_paused or not queues or last_activity is None:
        return False
    return last_activity > _stalled_after(queue_group, in_hand)


def _stalled_after(queue_group: QueueGroupStatus | QueueGroup, in_hand: int) -> float:
    """Return how long a server may begin no work; with work in hand, at least the hand-over timeout."""
    idle = IDLE_HEARTBEATS * queue_group.heartbeat_every
    return max(idle, queue_group.handover_timeout) if in_hand else idle


def _overdue_drains(status: QueueGroupStatus) -> Iterator[Alarm]:
    worst = max(status.alive, key=lambda server: _late_by(server, status), default=None)
    if worst is None or _late_by(worst, status) <= LATE_HEARTBEATS * status.heartbeat_every:
        return
    text = _(
        "server %(server)s must hand over queues (%(count)d), requested up to %(ago)s ago (allowed:"
        " %(within)s): its work hangs, or a transaction keeps the rows locked. If that does not end,"
        " stop the process."
    )
    limit = takeover_after(status.handover_timeout, worst.ttl)
    spans = {"ago": duration(worst.longest_asked or 0.0), "within": duration(limit)}
    values = {"server": printable(worst), "count": worst.asked_for, **spans}
    yield _alarm(AlarmKind.DRAIN_OVERDUE, status, text, about_row(Server, worst.pk), **values)


def stuck_drains(status: QueueGroupStatus) -> Iterator[Alarm]:
    """Yield the alarm that queues stay with draining servers; operators also see it as the answer to a drain."""
    if (stuck := status.stuck) is None:
        return
    text = _(
        "queues that stay on draining servers: %(count)d, for example queue %(queue)s on %(server)s:"
        " %(why)s. Start a server that may have them, or end the drain."
    )
    values = {"queue": printable(stuck.queue), "server": printable(stuck.server), "why": stuck.why}
    yield _alarm(AlarmKind.DRAIN_STUCK, status, text, count=stuck.count, **values)


def _late_by(server: ServerStatus, status: QueueGroupStatus) -> float:
    return (server.longest_asked or 0.0) - takeover_after(status.handover_timeout, server.ttl)


def _flapping(status: QueueGroupStatus) -> Iterator[Alarm]:
    if (flapping := status.flapping) is None:
        return
    text = _(
        "queues that changed their server more than %(normal)d times within 10 minutes: %(count)d, most"
        " often queue %(worst)s (%(changes)d times). Servers crash, restart or are drained repeatedly;"
        " %(command)s shows the reason for each move."
    )
    values = {"worst": printable(flapping.worst), "changes": flapping.changes, "normal": NORMAL_CHANGES}
    yield _alarm(AlarmKind.FLAPPING, status, text, count=flapping.queues, **values)


def _idle_servers(status: QueueGroupStatus) -> Iterator[Alarm]:
    limit = IDLE_HEARTBEATS * status.heartbeat_every
    idle = [server for server in _sharing(status) if server.idle is not None and server.idle > limit]
    if not idle:
        return
    worst = max(idle, key=lambda server: server.idle or 0.0)
    text = _(
        "servers without a queue for more than 10 heartbeats: %(count)d, for example %(server)s, for"
        " %(ago)s. There are too few queues, or other servers do not hand theirs over; see %(command)s."
    )
    values = {"server": printable(worst), "ago": duration(worst.idle or 0.0)}
    yield _alarm(AlarmKind.IDLE_SERVER, status, text, about_row(Server, worst.pk), count=len(idle), **values)


def _too_many_servers(status: QueueGroupStatus) -> Iterator[Alarm]:
    servers, queues = len(_sharing(status)), status.queues - status.retiring
    if servers > queues:
        text = _(
            "%(servers)d servers for %(queues)d queues: some servers have none. Add queues, or stop servers."
        )
        yield _alarm(AlarmKind.TOO_MANY_SERVERS, status, text, servers=servers, queues=queues)


def _sharing(status: QueueGroupStatus) -> list[ServerStatus]:
    return [server for server in status.alive if not server.is_draining]


def _alarm(
    kind: AlarmKind,
    status: QueueGroupStatus,
    text: str,
    row: Mapping[str, str] = MappingProxyType({}),
    /,
    **values: object,
) -> Alarm:
    name = printable(status.name)
    command = f"`manage.py resourcepool_queues show {shlex.quote(name)}`"
    return Alarm(kind, ABOUT_QUEUES % name, text % {"command": command, **values}, **row)


NO_SERVER = Badge(Level.BAD, "no_server", gettext_lazy("no server"))
HANGS = Badge(Level.BAD, "hangs", gettext_lazy("hangs"))
SERVER_HANGS = Badge(Level.BAD, "server_hangs", gettext_lazy("a server hangs"))
UNOWNED = Badge(Level.BAD, "unowned", gettext_lazy("queues without a server"))
NO_QUEUES = Badge(Level.IDLE, "no_queues", gettext_lazy("no queues"))
PRESUMED_DEAD = Badge(Level.BAD, "presumed_dead", gettext_lazy("presumed dead"))
LATE = Badge(Level.WARN, "late", gettext_lazy("up, late"))
DRAINING_LATE = Badge(Level.WARN, "draining_late", gettext_lazy("draining, late"))
DRAINING = Badge(Level.WARN, "draining", gettext_lazy("draining"))
UP = Badge(Level.OK, "up", gettext_lazy("up"))


def badge_of_server(group: QueueGroupStatus | QueueGroup, server: Any) -> Badge:
    """Return the state of a server; ``server``: its ``ServerStatus``, or an object with the same attributes."""
    is_late = server.heartbeat > LATE_HEARTBEATS * group.heartbeat_every
    states = (
        (not server.is_alive, PRESUMED_DEAD),
        (is_stalled(group, server.queues, server.last_activity, server.in_hand), HANGS),
        (server.is_draining, DRAINING_LATE if is_late else DRAINING),
        (is_late, LATE),
    )
    return first_badge(states, UP)


def queue_group_badge(group: QueueGroupStatus) -> Badge:
    states = (
        (group.is_paused, PAUSED),
        (not group.queues, NO_QUEUES),
        (not group.alive, NO_SERVER),
        (any(badge_of_server(group, server) is HANGS for server in group.alive), SERVER_HANGS),
        (group.unowned_why, UNOWNED),
    )
    return first_badge(states, WORKING)


SYSTEM = System(
    name="queues",
    word="queue_group",
    viewed=(QueueGroup,),
    details=(Server, Queue),
    read=queue_groups,
    figures=(
        text(gettext_lazy("queue group"), "name"),
        count(gettext_lazy("queues"), "queues", gauge=("queues", "Queues.")),
        count(gettext_lazy("servers"), lambda one: len(one.alive), gauge=("servers", "Live servers.")),
        count(gettext_lazy("requested"), "asked_for"),
        count(gettext_lazy("unowned"), "unowned", gauge=("unowned_queues", "Queues without a live server.")),
        gauge("unowned_seconds", "Time for which the first of them has had none.", "unowned_for"),
        count(gettext_lazy("generation"), "generation"),
        text(gettext_lazy("last change"), "last_change"),
    ),
    alarms=lambda statuses, limits: queue_alarms(statuses),
    section=QUEUES,
    subject=ABOUT_QUEUES,
    alarm_lists={
        AlarmKind.UNOWNED: RowList("unowned", Queue, {"status": "unowned"}),
        AlarmKind.DRAIN_OVERDUE: RowList("requested", Queue, {"status": "asked"}),
        AlarmKind.FLAPPING: RowList("moves", Move, {}),
        None: RowList("servers", Server, {}),
    },
    alarm_operations={AlarmKind.STALLED: ("drain",), AlarmKind.DRAIN_STUCK: ("undrain",)},
)
