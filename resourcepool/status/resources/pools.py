"""The status of each pool: its resources by state, its waiters and its health checks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from django.db import connections
from django.db.models import BooleanField, Case, Count, ExpressionWrapper, F, Min, Q, When

from resourcepool.db.dialect import DbNow
from resourcepool.exceptions import ResourcePoolError
from resourcepool.leases import verbs
from resourcepool.resources.registry import resource_models
from resourcepool.resources.state import OUT_OF_SERVICE_STATES, State, Status, Verdict, state
from resourcepool.status.snapshots import Since, Until, fetch_all
from resourcepool.status.system import gauge
from resourcepool.waiting.models import Ticket

FLAGS = ("in_service", "status", "n_busy", "n_held", "n_parked")  # columns that decide the state


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """One pool at one moment of the database's clock; times in seconds.

    Attributes:
        label: "app.Model"; ``title``: its name for users.
        counts: number of resources in each state.
        waiters: number of waiters; ``oldest_wait``: how long the first of them has waited.
        next_free_in: until the next lease, cool-down or quarantine ends, unless renewed; None without one.
        expired: free resources whose last lease expired without a release.
        bad: resources that failed their last health check; ``unchecked``: in service and never checked.
        oldest_check: age of the oldest health check of those in service; None: none was ever checked.
        passed_over: longest time for which a free resource has not been checked; None: none was ever checked.
        error: why the pool cannot be read; "" if it can.
    """

    label: str
    title: str
    counts: dict[State, int] = field(default_factory=lambda: dict.fromkeys(State, 0))
    waiters: int = 0
    oldest_wait: float = 0.0
    next_free_in: float | None = None
    expired: int = 0
    bad: int = 0
    unchecked: int = 0
    oldest_check: float | None = None
    passed_over: float | None = None
    error: str = ""

    ALSO: ClassVar = ("total", "utilisation")

    @property
    def total(self) -> int:
        """The number of resources, including those out of service."""
        return sum(self.counts.values())

    @property
    def working(self) -> int:
        """The number of resources that are free or leased."""
        return self.counts[State.FREE] + self.counts[State.LEASED]

    @property
    def utilisation(self) -> float:
        """The leased share of ``working``, from 0 to 1."""
        return self.counts[State.LEASED] / self.working if self.working else 0.0

    @property
    def is_exhausted(self) -> bool:
        """Whether there are waiters and no free resource."""
        return self.counts[State.FREE] == 0 and self.waiters > 0


def pools(models: Sequence[Any] | None = None) -> list[PoolStatus]:
    """Return the status of every pool, or of the pools of ``models``.

    One query for each pool, and for each database one for all waiters.
    """
    models = resource_models() if models is None else models
    lines = {using: _lines(using) for using in {model.pool.using for model in models}}
    return [_status(model, *lines[model.pool.using].get(model._meta.label_lower, (0, 0.0))) for model in models]


def in_state(state: State) -> Q:
    """Return the condition that a row is in this state now, equal to ``state_of`` in Python."""
    busy, held = Q(busy_before__gt=DbNow()), ~Q(holder="")
    parked = Q(status=Status.QUARANTINED, until__gt=DbNow())
    serves = Q(in_service=True)
    resting = serves & busy & Q(holder="")
    put_away = Q(in_service=False) & ~(busy & held)
    return {
        State.FREE: serves & Q(busy_before__lte=DbNow()),
        State.LEASED: serves & busy & held,
        State.COOLING: resting & ~parked,
        State.QUARANTINED: resting & parked | put_away & Q(status=Status.QUARANTINED),
        State.DRAINING: Q(in_service=False) & busy & held,
        State.RESERVED: put_away & Q(status=Status.RESERVED),
        State.RETIRED: put_away & Q(status=Status.RETIRED),
        State.OUT: put_away & ~Q(status__in=tuple(OUT_OF_SERVICE_STATES)),
    }[state]


def _status(model: Any, waiters: int, oldest_wait: float) -> PoolStatus:
    label, title = model._meta.label, str(model._meta.verbose_name_plural)
    try:
        groups = fetch_all(_groups_of(model))
    except ResourcePoolError as error:
        return PoolStatus(label, title, error=str(error))
    counts = dict.fromkeys(State, 0)
    for group in groups:
        counts[state(*(group[flag] for flag in FLAGS))] += group["n_rows"]
    serving = [group for group in groups if group["in_service"]]
    return PoolStatus(
        label=label,
        title=title,
        counts=counts,
        waiters=waiters,
        oldest_wait=oldest_wait,
        next_free_in=min((group["n_left"] for group in serving if group["n_busy"]), default=None),
        expired=sum(group["n_rows"] for group in groups if group["n_held"] and not group["n_busy"]),
        bad=sum(group["n_bad"] for group in serving),
        unchecked=sum(group["n_rows"] - group["n_checked"] for group in serving),
        oldest_check=_longest(group["n_due"] for group in serving),
        passed_over=_longest(group["n_idle"] for group in serving if not group["n_busy"]),
    )


def _groups_of(model: Any) -> Any:
    """Count groups of equal rows: faster on a large table than a count for each state."""
    # The prefix n_ avoids names of a model's columns.
    return (
        verbs.rows_of(connections[model.pool.using], model)
        .order_by()
        .annotate(
            n_busy=_whether(Q(busy_before__gt=DbNow())),
            n_held=_whether(~Q(holder="")),
            n_parked=_whether(Q(until__gt=DbNow())),
        )
        .values(*FLAGS)
        .annotate(
            n_rows=Count("pk"),
            n_left=Until(Min("busy_before")),
            n_bad=Count("pk", filter=Q(verdict=Verdict.BAD)),
            n_checked=Count("checked_at"),
            n_due=Since(Min("checked_at")),
            n_idle=Since(Min(_checkable_since())),
        )
    )


def _checkable_since() -> Case:
    """Return when a free row was last checked or, if later, became free: leased rows cannot be checked."""
    was_checked = When(checked_at__gte=F("busy_before"), then=F("checked_at"))
    return Case(was_checked, When(checked_at__isnull=False, then=F("busy_before")), default=None)


def _whether(condition: Q) -> Any:
    return ExpressionWrapper(condition, BooleanField())


def _lines(using: str) -> dict[str, tuple[int, float]]:
    """Return {pool: (number of waiters, seconds that the first has waited)}."""
    lines = Ticket.objects.using(using).waiting().order_by().values_list("pool")
    rows = fetch_all(lines.annotate(waiters=Count("pk"), waited=Since(Min("asked_at"))))
    return {pool: (waiters, waited) for pool, waiters, waited in rows}


def _longest(spans: Iterable[float | None]) -> float | None:
    return max((span for span in spans if span is not None), default=None)


FIGURES = (
    gauge("waiters", "Waiters for a resource.", "waiters"),
    gauge("oldest_wait_seconds", "Time for which the first of them has waited.", "oldest_wait"),
    gauge("expired_leases", "Leases that expired without a release.", "expired"),
    gauge("bad_resources", "Resources that failed their last health check.", "bad"),
    gauge("readable", "Whether the table can be read.", lambda one: not one.error),
)
