"""What Prometheus is told of each kind of thing: numbers out of the readings that the dashboard shows."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from prometheus_client.core import GaugeMetricFamily

from resourcepool.elections.models import Election as ElectionRow
from resourcepool.locks.channels.models import Channel as ChannelRow
from resourcepool.models import Job
from resourcepool.queues.models import QueueGroup
from resourcepool.status.channels import CHANNELS
from resourcepool.status.elections import ELECTIONS
from resourcepool.status.jobs import jobs
from resourcepool.status.queues.queue_groups import queue_groups
from resourcepool.status.work.dispensers import DISPENSERS
from resourcepool.status.work.streams import STREAMS
from resourcepool.status.work.timers import TOPICS
from resourcepool.taskqueue.dispenser.models import Dispenser
from resourcepool.taskqueue.models import Stream
from resourcepool.taskqueue.timers.models import Topic

# The name of a gauge, what it says, and its value in a reading; None: it has none now.
Gauge = tuple[str, str, Callable[[Any], float | None]]


@dataclass(frozen=True)
class GaugeGroup:
    """The gauges of one kind of thing, such as streams; the label ``kind`` says which of them.

    Attributes:
        needed: the models that one must be able to view for them.
        read: returns the readings.
        gauges: what is told of each reading.
        called: the attribute of a reading with its name.
    """

    kind: str
    needed: tuple[Any, ...]
    read: Callable[[], Iterable[Any]]
    gauges: tuple[Gauge, ...]
    called: str = "name"

    def families(self) -> Iterator[GaugeMetricFamily]:
        """Yield each gauge, with its values."""
        found = list(self.read())
        for name, about, value in self.gauges:
            family = GaugeMetricFamily(f"resourcepool_{self.kind}_{name}", about, labels=[self.kind])
            for one in found:
                if (number := value(one)) is not None:
                    family.add_metric([getattr(one, self.called)], number)
            yield family


GAUGE_GROUPS = (
    GaugeGroup(
        "stream",
        (Stream,),
        STREAMS.named,
        (
            ("unfinished_tasks", "Tasks that are not finished.", lambda one: one.depth),
            (
                "oldest_task_seconds",
                "Age of the first unfinished task.",
                lambda one: one.first and one.first.age,
            ),
            ("dead_tasks", "Tasks that wait for an operator.", lambda one: one.dead + one.blocked),
            ("led", "Whether a consumer leads.", lambda one: bool(one.leader)),
            ("standbys", "Consumers that stand by.", lambda one: one.standbys),
        ),
    ),
    GaugeGroup(
        "dispenser",
        (Dispenser,),
        DISPENSERS.named,
        (
            ("ready_tasks", "Tasks ready to be handed out.", lambda one: one.depth),
            ("oldest_task_seconds", "Age of the oldest of the next ones.", lambda one: one.oldest),
            ("assigned_tasks", "Tasks in buckets.", lambda one: one.assigned),
            ("failed_tasks", "Tasks that wait for an operator.", lambda one: one.failed),
            ("buckets", "Buckets that workers have.", lambda one: one.live),
        ),
    ),
    GaugeGroup(
        "topic",
        (Topic,),
        TOPICS.named,
        (
            ("pending_timers", "Timers that nobody handles yet.", lambda one: one.pending),
            ("due_timers", "Timers that may begin now.", lambda one: one.due),
            ("late_seconds", "For how long the first one has been due.", lambda one: one.late),
            ("running_timers", "Timers that are being handled.", lambda one: one.running),
            ("dead_timers", "Timers that wait for an operator.", lambda one: one.dead),
            ("nodes", "Live nodes that may handle them.", lambda one: len(one.nodes)),
        ),
    ),
    GaugeGroup(
        "channel",
        (ChannelRow,),
        CHANNELS.named,
        (
            ("last_number", "The number of the newest message.", lambda one: one.last),
            ("unread_messages", "What the subscription furthest behind has to read.", lambda one: one.unread),
        ),
    ),
    GaugeGroup(
        "election",
        (ElectionRow,),
        ELECTIONS.named,
        (
            ("led", "Whether somebody leads.", lambda one: bool(one.leader)),
            ("term", "The number of the last term.", lambda one: one.term),
            ("standbys", "How many stand by.", lambda one: one.standbys),
        ),
    ),
    GaugeGroup(
        "queue_group",
        (QueueGroup,),
        queue_groups,
        (
            ("queues", "Queues.", lambda one: one.queues),
            ("unowned_queues", "Queues without a living server.", lambda one: one.unowned),
            ("unowned_seconds", "For how long the first of them has had none.", lambda one: one.unowned_for),
            ("servers", "Servers that are not judged dead.", lambda one: len(one.alive)),
        ),
    ),
    GaugeGroup(
        "periodic_job",  # Prometheus has a label ``job`` of its own, and would rename this one
        (Job,),
        lambda: jobs().values(),
        (
            ("success_age_seconds", "Time since its last success.", lambda one: one.done),
            ("failed", "Whether it has failed since.", lambda one: one.failed is not None),
        ),
    ),
)
LOCK_GAUGES: tuple[Gauge, ...] = (
    ("holders", "Requests that hold a lock, a semaphore or a read-write lock.", lambda one: one.holders),
    ("waiters", "How many wait for one.", lambda one: one.waiters),
    ("longest_wait_seconds", "For how long the first of them has waited.", lambda one: one.longest_wait or 0),
    ("deadlocks", "Circles of waiters.", lambda one: len(one.cycles)),
)
POOL_GAUGES: tuple[Gauge, ...] = (
    ("waiters", "How many wait for a resource.", lambda one: one.waiters),
    ("oldest_wait_seconds", "For how long the first of them has waited.", lambda one: one.oldest_wait),
    ("expired_leases", "Leases that ran out without being released.", lambda one: one.expired),
    ("bad_resources", "Found bad by the last check.", lambda one: one.bad),
    ("readable", "Whether its table can be read.", lambda one: not one.error),
)
