"""What the metrics show of queue groups, and where their alarms link to; commands and pages of queues are special."""

from resourcepool.queues.models import Move, Queue, QueueGroup, Server
from resourcepool.status.alarm import ABOUT_QUEUES, AlarmKind
from resourcepool.status.queues.alarms import queue_alarms
from resourcepool.status.queues.queue_groups import queue_groups
from resourcepool.status.sections import QUEUES
from resourcepool.status.system import RowList, System, gauge

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
    alarm_operations={
        AlarmKind.STALLED: ("drain",),
        AlarmKind.DRAIN_STUCK: ("undrain",),
    },
)
