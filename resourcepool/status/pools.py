"""The state of each pool: how many are free, leased and away, who waits and for how long."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from django.db import connections
from django.db.models import BooleanField, Case, CharField, Count, ExpressionWrapper, F, Min, Q, Value, When

from resourcepool.dialect import DbNow
from resourcepool.exceptions import ResourcePoolError
from resourcepool.leases import verbs
from resourcepool.resources.registry import resource_models
from resourcepool.resources.state import OUT_OF_SERVICE_STATES, State, Status, Verdict, state
from resourcepool.status.snapshots import Since, Until, fetch_all, fetch_union
from resourcepool.waiting.models import Ticket

FLAGS = ("in_service", "status", "n_busy", "n_held", "n_parked")  # the columns that decide the state


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """One pool at one moment of the database's clock; times in seconds.

    Attributes:
        label: "app.Model"; ``title``: the same for people.
        counts: how many resources are in each state.
        waiters: how many wait; ``oldest_wait``: for how long the first of them has waited.
        next_free_in: until the next lease, cool-down or quarantine ends, unless it is renewed; None: none runs.
        expired: free, but the last lease was never released: its holder died or lost it.
        bad: found bad by the last check; ``unchecked``: in service and never checked.
        oldest_check: age of the oldest check among those in service; None: none was ever checked.
        passed_over: the longest time for which a free resource has not been checked; None: none was ever checked.
        trouble: why it cannot be read, in words; "" if it can.
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
        """How many are free or leased."""
        return self.counts[State.FREE] + self.counts[State.LEASED]

    @property
    def utilisation(self) -> float:
        """The leased share of ``working``, from 0 to 1."""
        return self.counts[State.LEASED] / self.working if self.working else 0.0

    @property
    def is_exhausted(self) -> bool:
        """Whether nothing is free while somebody waits."""
        return self.counts[State.FREE] == 0 and self.waiters > 0


def pools(models: Sequence[Any] | None = None) -> list[PoolStatus]:
    """Return the state of every pool, or of the pools of ``models``.

    Two queries for each database: one for the resources of all pools, one for all waiters.
    """
    models = resource_models() if models is None else models
    found: dict[str, PoolStatus] = {}
    for using in {model.pool.using for model in models}:
        beside = [model for model in models if model.pool.using == using]
        lines, groups = _lines(using), fetch_union(beside, _groups_of)
        for model in beside:
            label, line = model._meta.label, lines.get(model._meta.label_lower, (0, 0.0))
            own = None if groups is None else [one for one in groups if one["n_pool"] == label]
            found[label] = _status(model, *line, own)
    return [found[model._meta.label] for model in models]


def in_state(state: State) -> Q:
    """Return the condition that a row is in this state now; together they are ``state_of`` in the database."""
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


def _status(model: Any, waiters: int, oldest_wait: float, groups: list[Any] | None) -> PoolStatus:
    label, title = model._meta.label, str(model._meta.verbose_name_plural)
    if groups is None:
        try:
            groups = fetch_all(_groups_of(model))
        except ResourcePoolError as error:
            return PoolStatus(label, title, error=str(error))
    counts = dict.fromkeys(State, 0)
    for one in groups:
        counts[state(*(one[flag] for flag in FLAGS))] += one["n_rows"]
    serving = [one for one in groups if one["in_service"]]
    return PoolStatus(
        label=label,
        title=title,
        counts=counts,
        waiters=waiters,
        oldest_wait=oldest_wait,
        next_free_in=min((one["n_left"] for one in serving if one["n_busy"]), default=None),
        expired=sum(one["n_rows"] for one in groups if one["n_held"] and not one["n_busy"]),
        bad=sum(one["n_bad"] for one in serving),
        unchecked=sum(one["n_rows"] - one["n_checked"] for one in serving),
        oldest_check=_longest(one["n_due"] for one in serving),
        passed_over=_longest(one["n_idle"] for one in serving if not one["n_busy"]),
    )


def _groups_of(model: Any) -> Any:
    """Count groups of equal rows: faster on a large table than a count for each state."""
    # The names begin with n_: a resource may have columns of any other name.
    return (
        verbs.rows_of(connections[model.pool.using], model)
        .order_by()
        .annotate(
            n_pool=Value(model._meta.label, CharField()),
            n_busy=_whether(Q(busy_before__gt=DbNow())),
            n_held=_whether(~Q(holder="")),
            n_parked=_whether(Q(until__gt=DbNow())),
        )
        .values("n_pool", *FLAGS)
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
    """Return when a free row was checked last, or came free after that: checks skip held rows."""
    was_checked = When(checked_at__gte=F("busy_before"), then=F("checked_at"))
    return Case(was_checked, When(checked_at__isnull=False, then=F("busy_before")), default=None)


def _whether(condition: Q) -> Any:
    return ExpressionWrapper(condition, BooleanField())


def _lines(using: str) -> dict[str, tuple[int, float]]:
    """Return {pool: (number of waiters, seconds for which the first has waited)}."""
    lines = Ticket.objects.using(using).waiting().order_by().values_list("pool")
    found = fetch_all(lines.annotate(waiters=Count("pk"), waited=Since(Min("asked_at"))))
    return {pool: (waiters, waited) for pool, waiters, waited in found}


def _longest(spans: Iterable[float | None]) -> float | None:
    return max((span for span in spans if span is not None), default=None)
