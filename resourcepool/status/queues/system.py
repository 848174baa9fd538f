"""The states of queue groups and their servers; their gauges, and where their alarms link to."""

from typing import Any

from resourcepool.queues.models import Move, Queue, QueueGroup, Server
from resourcepool.status.alarm import ABOUT_QUEUES, AlarmKind
from resourcepool.status.badge import PAUSED, WORKING, Badge, Level
from resourcepool.status.queues.alarms import is_stalled, queue_alarms
from resourcepool.status.queues.queue_groups import QueueGroupStatus, queue_groups
from resourcepool.status.system import QUEUES, RowList, System, gauge
from resourcepool.translation import gettext_lazy as _

LATE_HEARTBEATS = 2  # without a heartbeat for this many intervals, a server is late

NO_SERVER = Badge(Level.BAD, "no_server", _("no server"))
HANGS = Badge(Level.BAD, "hangs", _("hangs"))
SERVER_HANGS = Badge(Level.BAD, "server_hangs", _("a server hangs"))
UNOWNED = Badge(Level.BAD, "unowned", _("queues without a server"))
NO_QUEUES = Badge(Level.IDLE, "no_queues", _("no queues"))
PRESUMED_DEAD = Badge(Level.BAD, "presumed_dead", _("presumed dead"))
LATE = Badge(Level.WARN, "late", _("up, late"))
DRAINING_LATE = Badge(Level.WARN, "draining_late", _("draining, late"))
DRAINING = Badge(Level.WARN, "draining", _("draining"))
UP = Badge(Level.OK, "up", _("up"))


def badge_of_server(group: QueueGroupStatus | QueueGroup, server: Any) -> Badge:
    """Return the state of a server; ``server``: its ``ServerStatus``, or an object with the same attributes."""
    is_late = server.heartbeat > LATE_HEARTBEATS * group.heartbeat_every
    states = (
        (not server.is_alive, PRESUMED_DEAD),
        (is_stalled(group, server.queues, server.last_activity, server.in_hand), HANGS),
        (server.is_draining, DRAINING_LATE if is_late else DRAINING),
        (is_late, LATE),
    )
    return next((badge for applies, badge in states if applies), UP)


def queue_group_badge(group: QueueGroupStatus) -> Badge:
    """Return the state of a queue group."""
    states = (
        (group.is_paused, PAUSED),
        (not group.queues, NO_QUEUES),
        (not group.alive, NO_SERVER),
        (any(badge_of_server(group, server) is HANGS for server in group.alive), SERVER_HANGS),
        (group.unowned_why, UNOWNED),
    )
    return next((badge for applies, badge in states if applies), WORKING)


SYSTEM = System(
    name="queues",
    word="queue_group",
    viewed=(QueueGroup,),
    details=(Server, Queue),
    read=queue_groups,
    figures=(
        gauge("queues", "Queues.", "queues"),
        gauge("unowned_queues", "Queues without a live server.", "unowned"),
        gauge("unowned_seconds", "Time for which the first of them has had none.", "unowned_for"),
        gauge("servers", "Live servers.", lambda one: len(one.alive)),
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
