"""The gauges for Prometheus: numbers of the statuses that the dashboard shows."""

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

# (name of the gauge, help, function that returns its value from a status; None: no value now).
Gauge = tuple[str, str, Callable[[Any], float | None]]


@dataclass(frozen=True)
class GaugeGroup:
    """The gauges of one system, such as streams; the label ``kind`` is the name of the stream.

    Attributes:
        needed: the models that the caller must be allowed to view.
        read: returns the statuses.
        gauges: the gauges of each status.
        name_attribute: the attribute of a status with its name.
    """

    kind: str
    needed: tuple[Any, ...]
    read: Callable[[], Iterable[Any]]
    gauges: tuple[Gauge, ...]
    name_attribute: str = "name"

    def families(self) -> Iterator[GaugeMetricFamily]:
        """Yield each gauge, with its values."""
        statuses = list(self.read())
        for name, about, value in self.gauges:
            family = GaugeMetricFamily(f"resourcepool_{self.kind}_{name}", about, labels=[self.kind])
            for one in statuses:
                if (number := value(one)) is not None:
                    family.add_metric([getattr(one, self.name_attribute)], number)
            yield family


GAUGE_GROUPS = (
    GaugeGroup(
        "stream",
        (Stream,),
        STREAMS.named,
        (
            ("unfinished_tasks", "Unfinished tasks.", lambda one: one.depth),
            (
                "oldest_task_seconds",
                "Age of the first unfinished task.",
                lambda one: one.first and one.first.age,
            ),
            ("dead_tasks", "Failed tasks to retry or discard.", lambda one: one.dead + one.blocked),
            ("led", "Whether there is a leader.", lambda one: bool(one.leader)),
            ("standbys", "Standby consumers.", lambda one: one.standbys),
        ),
    ),
    GaugeGroup(
        "dispenser",
        (Dispenser,),
        DISPENSERS.named,
        (
            ("ready_tasks", "Tasks ready to be handed out.", lambda one: one.depth),
            ("oldest_task_seconds", "Age of the oldest of the next tasks.", lambda one: one.oldest),
            ("assigned_tasks", "Tasks in buckets.", lambda one: one.assigned),
            ("failed_tasks", "Failed tasks to retry or discard.", lambda one: one.failed),
            ("buckets", "Buckets of workers.", lambda one: one.live),
        ),
    ),
    GaugeGroup(
        "topic",
        (Topic,),
        TOPICS.named,
        (
            ("pending_timers", "Timers that do not run yet.", lambda one: one.pending),
            ("due_timers", "Timers that are due.", lambda one: one.due),
            ("late_seconds", "Time for which the first timer has been due.", lambda one: one.late),
            ("running_timers", "Running timers.", lambda one: one.running),
            ("dead_timers", "Failed timers to retry or discard.", lambda one: one.dead),
            ("nodes", "Live timer nodes of the topic.", lambda one: len(one.nodes)),
        ),
    ),
    GaugeGroup(
        "channel",
        (ChannelRow,),
        CHANNELS.named,
        (
            ("last_number", "The number of the newest message.", lambda one: one.last),
            (
                "unread_messages",
                "Unread messages of the subscription that is furthest behind.",
                lambda one: one.unread,
            ),
        ),
    ),
    GaugeGroup(
        "election",
        (ElectionRow,),
        ELECTIONS.named,
        (
            ("led", "Whether there is a leader.", lambda one: bool(one.leader)),
            ("term", "The number of the last term.", lambda one: one.term),
            ("standbys", "Number of standbys.", lambda one: one.standbys),
        ),
    ),
    GaugeGroup(
        "queue_group",
        (QueueGroup,),
        queue_groups,
        (
            ("queues", "Queues.", lambda one: one.queues),
            ("unowned_queues", "Queues without a live server.", lambda one: one.unowned),
            ("unowned_seconds", "Time for which the first of them has had none.", lambda one: one.unowned_for),
            ("servers", "Live servers.", lambda one: len(one.alive)),
        ),
    ),
    GaugeGroup(
        "periodic_job",  # Prometheus sets a label ``job`` itself
        (Job,),
        lambda: jobs().values(),
        (
            ("success_age_seconds", "Time since the last success.", lambda one: one.done),
            ("failed", "Whether the job has failed since then.", lambda one: one.failed is not None),
        ),
    ),
)
LOCK_GAUGES: tuple[Gauge, ...] = (
    ("holders", "Requests that hold a lock, a semaphore or a read-write lock.", lambda one: one.holders),
    ("waiters", "Waiters for one.", lambda one: one.waiters),
    ("longest_wait_seconds", "Time for which the first of them has waited.", lambda one: one.longest_wait or 0),
    ("deadlocks", "Wait cycles.", lambda one: len(one.cycles)),
)
POOL_GAUGES: tuple[Gauge, ...] = (
    ("waiters", "Waiters for a resource.", lambda one: one.waiters),
    ("oldest_wait_seconds", "Time for which the first of them has waited.", lambda one: one.oldest_wait),
    ("expired_leases", "Leases that expired without a release.", lambda one: one.expired),
    ("bad_resources", "Resources that failed their last health check.", lambda one: one.bad),
    ("readable", "Whether the table can be read.", lambda one: not one.error),
)
