"""An alarm, the kinds of alarms, and their thresholds."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from resourcepool import options
from resourcepool.conf import setting
from resourcepool.exceptions import BadOption
from resourcepool.translation import gettext as _, gettext_noop

# The subjects of alarms about systems other than pools.
ABOUT_QUEUES = gettext_noop("queues: %s")
ABOUT_STREAMS = gettext_noop("stream: %s")
ABOUT_DISPENSERS = gettext_noop("dispenser: %s")
ABOUT_TIMERS = gettext_noop("timers: %s")
ABOUT_LOCKS = gettext_noop("locks: %s")
ABOUT_CHANNELS = gettext_noop("channel: %s")
ABOUT_DATABASES = gettext_noop("database: %s")

LOCK_LABELS = {
    "lock": gettext_noop("lock %s"),
    "semaphore": gettext_noop("semaphore %s"),
    "rwlock": gettext_noop("read-write lock %s"),
    "condition": gettext_noop("condition %s"),
    "barrier": gettext_noop("barrier %s"),
}


class AlarmKind(StrEnum):
    """The kinds of alarms, the worst first; the mild ones begin with CHECKER_BROKEN."""

    UNREADABLE = "unreadable"
    NOTHING_IN_SERVICE = "nothing_in_service"
    DEADLOCK = "deadlock"
    UNOWNED = "unowned"
    NO_CONSUMER = "no_consumer"
    NO_NODE = "no_node"
    BLOCKED = "blocked"
    STALLED = "stalled"
    EXHAUSTED = "exhausted"
    STARVED = "starved"
    LOCK_WAIT = "lock_wait"
    FEW_SESSIONS = "few_sessions"
    UNCLAIMED_TIMERS = "unclaimed_timers"
    LATE_TIMERS = "late_timers"
    LATE_TASKS = "late_tasks"
    MISSED_MESSAGES = "missed_messages"
    CHECKER_BROKEN = "checker_broken"
    JOB_FAILED = "job_failed"
    SWEEP_STALE = "sweep_stale"
    CHECK_STALE = "check_stale"
    FAILED_TASKS = "failed_tasks"
    DEAD_TASKS = "dead_tasks"
    DEAD_TIMERS = "dead_timers"
    LAGGING = "lagging"
    DRAIN_OVERDUE = "drain_overdue"
    DRAIN_STUCK = "drain_stuck"
    FLAPPING = "flapping"
    IDLE_SERVER = "idle_server"
    TOO_MANY_SERVERS = "too_many_servers"
    LEAKED = "leaked"
    EXPIRED = "expired"


GRAVITY = {kind: number for number, kind in enumerate(AlarmKind)}


def lock_label(kind: str, name: str) -> str:
    """Return a lock's kind and name for users: "semaphore imports"."""
    text = LOCK_LABELS.get(kind, LOCK_LABELS["lock"])  # another version may have stored it
    return _(text) % name


@dataclass(frozen=True, slots=True)
class Alarm:
    """One problem that exists now.

    Attributes:
        pool: the label of its pool; or an ``ABOUT_`` text with a name ("locks: <kind> <name>"); or "".
        model, key: the label of a model and the primary key of the one row that it is about; "": it is about several.
    """

    kind: AlarmKind
    pool: str
    text: str
    model: str = field(default="", compare=False)
    key: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.about}: {self.text}" if self.pool else self.text

    @property
    def about(self) -> str:
        """``pool`` in the user's language."""
        system, colon, name = self.pool.partition(": ")
        if not colon:
            return self.pool
        about = f"{system}: %s"
        return _(about) % (lock_label(*name.split(" ", 1)) if about == ABOUT_LOCKS else name)

    @property
    def id(self) -> str:
        """Its kind and subject, by which it is recognized while it lasts: "blocked stream: oracle"."""
        return f"{self.kind.value} {self.pool}".rstrip()

    @property
    def is_severe(self) -> bool:
        """Whether it keeps, or will soon keep, a caller from a resource or work from being done."""
        return GRAVITY[self.kind] < GRAVITY[AlarmKind.CHECKER_BROKEN]


def failed_work(kind: AlarmKind, about: str, count: int) -> Iterator[Alarm]:
    """Yield the alarm about failed tasks or timers, if there are any."""
    if count:
        text = _("failed for good, waiting for an operator: %d. Retry or discard them.")
        yield Alarm(kind, about, text % count)


def about_row(model: Any, key: object) -> dict[str, str]:
    """Return the fields of an ``Alarm`` about one row; ``key``: its primary key, None: no row."""
    return {} if key is None else {"model": model._meta.label_lower, "key": str(key)}


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The thresholds of alarms, in seconds; RESOURCEPOOL["ALARMS"]."""

    oldest_wait: float
    oldest_task: float
    late_timer: float
    unread: float
    sweep: float

    @classmethod
    def from_settings(cls) -> "Thresholds":
        """Return the limits of the settings; raises BadOption."""
        chosen, names = setting("ALARMS"), tuple(cls.__dataclass_fields__)
        if unknown := chosen.keys() - set(names):
            raise BadOption(
                "RESOURCEPOOL['ALARMS']",
                sorted(unknown, key=str),
                because=f"the known names are {', '.join(names)}",
            )
        return cls(*(options.seconds(f"RESOURCEPOOL['ALARMS'][{name!r}]", chosen[name]) for name in names))
