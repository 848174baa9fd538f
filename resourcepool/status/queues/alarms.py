"""Alarms about queues and their servers, in words: computed from the state of a queue group (R1.7, R1.8)."""

import shlex
from collections.abc import Iterable, Iterator

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from resourcepool.labels import printable
from resourcepool.queues.models import QueueGroup
from resourcepool.queues.planning.changes import takeover_after
from resourcepool.status.alarm import ABOUT_QUEUES, Alarm, AlarmKind
from resourcepool.status.queues.problems import NORMAL_CHANGES
from resourcepool.status.queues.queue_groups import QueueGroupStatus, ServerStatus
from resourcepool.status.snapshots import duration

IDLE_HEARTBEATS = 10  # a server may be without a queue, or ask for no work, for so long
LATE_HEARTBEATS = 2  # other servers act on overdue changes within this time


def queue_alarms(queue_groups: Iterable[QueueGroupStatus]) -> Iterator[Alarm]:
    """Yield the alarms of these queue groups."""
    for one in queue_groups:
        yield from _of_unowned(one)
        yield from _of_stalled(one)
        yield from _of_drains(one)
        yield from stuck_drains(one)
        yield from _of_restless(one)
        yield from _of_idle(one)
        yield from _of_too_many(one)


def _of_unowned(one: QueueGroupStatus) -> Iterator[Alarm]:
    limit = one.judge_dead_after + LATE_HEARTBEATS * one.heartbeat_every
    if not one.unowned or one.unowned_for is None or one.unowned_for <= limit:
        return
    if one.alive:
        text = ngettext(
            "%(count)d queue has had no living server for %(ago)s, though there are servers. Queue %(example)s:"
            " %(why)s. See %(command)s.",
            "%(count)d queues have had no living server for up to %(ago)s, though there are servers. Such as queue"
            " %(example)s: %(why)s. See %(command)s.",
            one.unowned,
        )
    else:
        text = ngettext(
            "nobody works on its %(count)d queue: no server is up (without an owner for up to %(ago)s); start one.",
            "nobody works on its %(count)d queues: no server is up (without an owner for up to %(ago)s); start one.",
            one.unowned,
        )
    said = {"example": printable(one.unowned_one or "?"), "why": one.unowned_why or "?"}
    yield _alarm(AlarmKind.UNOWNED, one, text, count=one.unowned, ago=duration(one.unowned_for), **said)


def _of_stalled(one: QueueGroupStatus) -> Iterator[Alarm]:
    late = [
        server for server in one.alive if is_stalled(one, server.queues, server.last_activity, server.in_hand)
    ]
    worst = max(late, key=lambda server: server.last_activity or 0.0, default=None)
    if worst is None:
        return
    if worst.in_hand:
        text = ngettext(
            "server %(server)s has begun no work for %(ago)s, and has %(count)d queue in hand (allowed: %(within)s):"
            " its work hangs, or takes too long at a time. Its heartbeat goes on, so nobody takes over; restart it.",
            "server %(server)s has begun no work for %(ago)s, and has %(count)d queues in hand (allowed: %(within)s):"
            " its work hangs, or takes too long at a time. Its heartbeat goes on, so nobody takes over; restart it.",
            worst.in_hand,
        )
    else:
        text = ngettext(
            "server %(server)s has %(count)d queue, but nothing in it has asked for work for %(ago)s: what works on it"
            " has ended, or hangs. Its heartbeat goes on, so nobody takes over; restart it.",
            "server %(server)s has %(count)d queues, but nothing in it has asked for work for %(ago)s: what works on"
            " them has ended, or hangs. Its heartbeat goes on, so nobody takes over; restart it.",
            worst.queues,
        )
    said = {"ago": duration(worst.last_activity or 0.0), "within": duration(_stalls_after(one, worst.in_hand))}
    count = worst.in_hand or worst.queues
    yield _alarm(AlarmKind.STALLED, one, text, server=printable(worst), count=count, **said)


def is_stalled(
    queue_group: QueueGroupStatus | QueueGroup, queues: int, last_activity: float | None, in_hand: int
) -> bool:
    """Tell whether the work of a living server hangs; for the arguments see ``ServerStatus``."""
    if queue_group.is_paused or not queues or last_activity is None:
        return False
    return last_activity > _stalls_after(queue_group, in_hand)


def _stalls_after(queue_group: QueueGroupStatus | QueueGroup, in_hand: int) -> float:
    """Return for how long a server may begin no work; with work in hand, as long as a hand-over may take."""
    asks = IDLE_HEARTBEATS * queue_group.heartbeat_every
    return max(asks, queue_group.handover_timeout) if in_hand else asks


def _of_drains(one: QueueGroupStatus) -> Iterator[Alarm]:
    worst = max(one.alive, key=lambda server: _late_by(server, one), default=None)
    if worst is None or _late_by(worst, one) <= LATE_HEARTBEATS * one.heartbeat_every:
        return
    text = ngettext(
        "server %(server)s was to give up %(count)d queue, asked for %(ago)s ago (allowed: %(within)s): its work"
        " hangs, or a transaction keeps the row locked. If it does not end, stop that process.",
        "server %(server)s was to give up %(count)d queues, asked for up to %(ago)s ago (allowed: %(within)s): its"
        " work hangs, or a transaction keeps the rows locked. If it does not end, stop that process.",
        worst.asked_for,
    )
    spans = {"ago": worst.longest_asked or 0.0, "within": takeover_after(one.handover_timeout, worst.ttl)}
    said = {name: duration(span) for name, span in spans.items()}
    yield _alarm(AlarmKind.DRAIN_OVERDUE, one, text, server=printable(worst), count=worst.asked_for, **said)


def stuck_drains(one: QueueGroupStatus) -> Iterator[Alarm]:
    """Yield the alarm that queues stay with draining servers; an operator who drains is told the same at once."""
    if one.stuck is None:
        return
    text = ngettext(
        "%(count)d queue stays with a server that is draining: queue %(queue)s with %(server)s: %(why)s. Start a server"
        " that may have it, or end the drain.",
        "%(count)d queues stay with servers that are draining, such as queue %(queue)s with %(server)s: %(why)s. Start"
        " a server that may have them, or end the drain.",
        one.stuck.count,
    )
    said = {"queue": printable(one.stuck.queue), "server": printable(one.stuck.server), "why": one.stuck.why}
    yield _alarm(AlarmKind.DRAIN_STUCK, one, text, count=one.stuck.count, **said)


def _late_by(server: ServerStatus, one: QueueGroupStatus) -> float:
    return (server.longest_asked or 0.0) - takeover_after(one.handover_timeout, server.ttl)


def _of_restless(one: QueueGroupStatus) -> Iterator[Alarm]:
    if one.flapping is None:
        return
    text = ngettext(
        "%(count)d queue changed its server more than %(rests)d times within 10 minutes: queue %(worst)s (%(changes)d"
        " times). Servers die, restart, or are drained again and again; %(command)s says why each move was made.",
        "%(count)d queues changed their server more than %(rests)d times within 10 minutes, most often queue %(worst)s"
        " (%(changes)d times). Servers die, restart, or are drained again and again; %(command)s says why each move was"
        " made.",
        one.flapping.queues,
    )
    said = {"worst": printable(one.flapping.worst), "changes": one.flapping.changes}
    yield _alarm(AlarmKind.FLAPPING, one, text, count=one.flapping.queues, rests=NORMAL_CHANGES, **said)


def _of_idle(one: QueueGroupStatus) -> Iterator[Alarm]:
    limit = IDLE_HEARTBEATS * one.heartbeat_every
    idle = [server for server in _working(one) if server.idle is not None and server.idle > limit]
    if not idle:
        return
    worst = max(idle, key=lambda server: server.idle or 0.0)
    text = ngettext(
        "%(count)d server has had no queue for more than 10 heartbeats: %(server)s, for %(ago)s. There are too few"
        " queues, or others do not give theirs up; see %(command)s.",
        "%(count)d servers have had no queue for more than 10 heartbeats, such as %(server)s, for %(ago)s. There are"
        " too few queues, or others do not give theirs up; see %(command)s.",
        len(idle),
    )
    said = {"server": printable(worst), "ago": duration(worst.idle or 0.0)}
    yield _alarm(AlarmKind.IDLE_SERVER, one, text, count=len(idle), **said)


def _of_too_many(one: QueueGroupStatus) -> Iterator[Alarm]:
    servers, queues = len(_working(one)), one.queues - one.retiring
    if servers > queues:
        text = _(
            "%(servers)d servers for %(queues)d queues: some stay without one. Add queues, or stop servers."
        )
        yield _alarm(AlarmKind.TOO_MANY_SERVERS, one, text, servers=servers, queues=queues)


def _working(one: QueueGroupStatus) -> list[ServerStatus]:
    return [server for server in one.alive if not server.is_draining]


def _alarm(kind: AlarmKind, one: QueueGroupStatus, text: str, **said: object) -> Alarm:
    name = printable(one.name)
    command = f"`manage.py resourcepool_queues show {shlex.quote(name)}`"
    return Alarm(kind, ABOUT_QUEUES % name, text % {"command": command, **said})
