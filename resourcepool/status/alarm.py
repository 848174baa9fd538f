"""An alarm, and the kinds of alarms."""

from dataclasses import dataclass
from enum import StrEnum

from django.utils.translation import gettext as _

ABOUT_QUEUES = "queues: "
ABOUT_STREAMS = "stream: "
ABOUT_DISPENSERS = "dispenser: "
ABOUT_TIMERS = "timers: "
ABOUT_LOCKS = "locks: "
ABOUT_CHANNELS = "channel: "


class Kind(StrEnum):
    """The kinds of alarms, the worst first."""

    UNREADABLE = "unreadable"
    NOTHING_IN_SERVICE = "nothing_in_service"
    DEADLOCK = "deadlock"
    UNOWNED = "unowned"
    NO_CONSUMER = "no_consumer"
    NO_NODE = "no_node"
    BLOCKED = "blocked"
    EXHAUSTED = "exhausted"
    STARVED = "starved"
    LOCK_WAIT = "lock_wait"
    CHECKER_BROKEN = "checker_broken"
    JOB_FAILED = "job_failed"
    SWEEP_STALE = "sweep_stale"
    CHECK_STALE = "check_stale"
    STALLED = "stalled"
    LATE_TASKS = "late_tasks"
    FAILED_TASKS = "failed_tasks"
    UNTAKEN_TIMERS = "untaken_timers"
    LATE_TIMERS = "late_timers"
    DEAD_TIMERS = "dead_timers"
    MISSED_MESSAGES = "missed_messages"
    LAGGING = "lagging"
    DRAIN_OVERDUE = "drain_overdue"
    DRAIN_STUCK = "drain_stuck"
    FLAPPING = "flapping"
    IDLE_SERVER = "idle_server"
    TOO_MANY_SERVERS = "too_many_servers"
    LEAKED = "leaked"
    EXPIRED = "expired"


def lock_called(kind: str, name: str) -> str:
    """Return the name of a lock, or a relative of locks, with its kind (a ``LockKind``), for people."""
    match kind:
        case "semaphore":
            return _("semaphore %s") % name
        case "rwlock":
            return _("read-write lock %s") % name
        case "condition":
            return _("condition %s") % name
        case "barrier":
            return _("barrier %s") % name
    return _("lock %s") % name


@dataclass(frozen=True, slots=True)
class Alarm:
    """One problem that exists now.

    Attributes:
        pool: the label of its pool, "queues: <task type>" for queues, "stream: <name>" for streams,
            "dispenser: <name>" for dispensers, "timers: <topic>" for timers, "locks: <kind> <name>" for locks,
            "channel: <name>" for channels, or "".
    """

    kind: Kind
    pool: str
    text: str

    def __str__(self) -> str:
        return f"{self.about}: {self.text}" if self.pool else self.text

    @property
    def about(self) -> str:
        """``pool``, for people."""
        if self.pool.startswith(ABOUT_QUEUES):
            return _("queues: %s") % self.pool.removeprefix(ABOUT_QUEUES)
        if self.pool.startswith(ABOUT_STREAMS):
            return _("stream: %s") % self.pool.removeprefix(ABOUT_STREAMS)
        if self.pool.startswith(ABOUT_DISPENSERS):
            return _("dispenser: %s") % self.pool.removeprefix(ABOUT_DISPENSERS)
        if self.pool.startswith(ABOUT_TIMERS):
            return _("timers: %s") % self.pool.removeprefix(ABOUT_TIMERS)
        if self.pool.startswith(ABOUT_LOCKS):
            return _("locks: %s") % lock_called(*self.pool.removeprefix(ABOUT_LOCKS).split(" ", 1))
        if self.pool.startswith(ABOUT_CHANNELS):
            return _("channel: %s") % self.pool.removeprefix(ABOUT_CHANNELS)
        return self.pool

    @property
    def is_severe(self) -> bool:
        """Whether a caller lacks a resource, or work is not done, because of it, now or soon."""
        return self.kind in (
            Kind.UNREADABLE,
            Kind.NOTHING_IN_SERVICE,
            Kind.DEADLOCK,
            Kind.UNOWNED,
            Kind.NO_CONSUMER,
            Kind.NO_NODE,
            Kind.BLOCKED,
            Kind.EXHAUSTED,
            Kind.STARVED,
            Kind.LOCK_WAIT,
            Kind.STALLED,
            Kind.LATE_TASKS,
            Kind.UNTAKEN_TIMERS,
            Kind.LATE_TIMERS,
            Kind.MISSED_MESSAGES,
        )
