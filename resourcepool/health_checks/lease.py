"""The resources to check, why others are skipped, and the lease of a health check."""

import dataclasses
import datetime
import random
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q

from resourcepool.clock import monotonic
from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.db.open_transaction import refuse_open_transaction
from resourcepool.db.retry import Unsettled, retrying
from resourcepool.events import sentence_for
from resourcepool.health_checks.checker import Finding
from resourcepool.leases import verbs
from resourcepool.leases.terms import Grant, Terms, default_holder
from resourcepool.resources.lease import ResourceLease
from resourcepool.resources.queryset import BACK_IN_SERVICE, ResourceQuerySet
from resourcepool.resources.registry import all_resources
from resourcepool.resources.state import State, Status, Verdict, state_of
from resourcepool.signals import EventKind, RowEvent, emit, is_recorded
from resourcepool.waiting import release, tickets

CHECK_REASON = "check"  # the code of the reason in quarantines set by a check
SKIP_REASONS = {
    State.FREE: sentence_for("busy_for_a_moment"),
    State.LEASED: sentence_for("in_use"),
    State.COOLING: sentence_for("cooling"),
    State.QUARANTINED: sentence_for("not_quarantined_by_check"),
    State.DRAINING: sentence_for("in_use"),
    State.OUT: sentence_for("out_of_service"),
    State.RESERVED: sentence_for("reserved"),
    State.RETIRED: sentence_for("retired"),
}

TICK = datetime.timedelta(milliseconds=1)
TTL = 60.0  # seconds until the resource of a crashed checker is free, even if it was in quarantine


@dataclass(frozen=True, slots=True)
class Candidate:
    """A resource that was not held when it was read.

    Attributes:
        holder: the holder of an expired lease that was not released; "": none.
        is_quarantined: it is in quarantine.
        is_quarantined_by_others: the quarantine was set by an operator or a crawler, not by a check.
        was_bad: the last check found it bad, or it is in quarantine.
        until: the end of the quarantine, to distinguish it from a later one.
    """

    pk: Any
    fence: int
    holder: str
    is_quarantined: bool
    is_quarantined_by_others: bool
    was_bad: bool
    until: datetime.datetime | None = None


def find_candidates(
    model: Any, pks: Collection[Any] | None, *, any_quarantine: bool, skip_checked_within: float
) -> list[Candidate]:
    """Return free and quarantined resources to check, in random order, so that each batch is a fair sample.

    Args:
        pks: only these; None: all.
        any_quarantine: also resources quarantined by operators and crawlers, not only by checks.
        skip_checked_within: skip resources that were checked within this many seconds.
    """
    rows = ResourceQuerySet(model=model, using=model.pool.using)
    if pks is not None:
        rows = rows.filter(pk__in=pks)
    if skip_checked_within:
        rows = rows.filter(Q(checked_at=None) | Q(checked_at__lte=DbLater(-skip_checked_within)))
    quarantined = rows.quarantined()
    if not any_quarantine:
        quarantined = quarantined.filter(reason__code=CHECK_REASON)
    candidates = [*_read(rows.available(), is_quarantined=False), *_read(quarantined, is_quarantined=True)]
    random.shuffle(candidates)
    return candidates


def skip_reasons(model: Any, pks: Collection[Any]) -> dict[Any, str]:
    """Return {primary key: the reason why it cannot be checked now}."""
    rows = all_resources(model).filter(pk__in=pks).annotate(db_now=DbNow())
    read = retrying(connections[model.pool.using], lambda: list(rows.all()))
    states = {row.pk: state_of(row, row.db_now) for row in read}
    return {pk: SKIP_REASONS[states[pk]] if pk in states else sentence_for("does_not_exist") for pk in pks}


def _read(rows: ResourceQuerySet, *, is_quarantined: bool) -> list[Candidate]:
    columns = rows.values_list("pk", "fence", "holder", "reason", "verdict", "until")
    read = retrying(connections[rows.db], lambda: list(columns.all()))
    return [
        Candidate(
            pk,
            fence,
            holder,
            is_quarantined,
            is_quarantined_by_others=is_quarantined and getattr(reason, "code", "") != CHECK_REASON,
            was_bad=is_quarantined or verdict == Verdict.BAD,
            until=until,
        )
        for pk, fence, holder, reason, verdict, until in read
    ]


class CheckLease(ResourceLease):
    """The lease during a check. It emits one event for the check, and none for acquisition and release."""

    candidate: Candidate

    def note(self, finding: Finding) -> bool:
        """Store the finding; False if the lease was lost, and nothing was stored."""
        values = {"verdict": finding.verdict, "latency": finding.seconds, "checked_at": DbNow()}
        if not self._update(self._rows(), **values):
            return False
        verdict = sentence_for(finding.verdict)
        reason = sentence_for("about", name=verdict, why=finding.why) if finding.why else verdict
        grant = (self.model, self.using, self.pk, self.fence, self.holder)
        emit(RowEvent(EventKind.CHECKED, *grant, reason=reason, actor=self._actor, seconds=finding.seconds))
        return True

    def return_to_service(self) -> bool:
        """End the quarantine, unless an operator has changed it meanwhile; return whether it was ended."""
        quarantined = self._rows().filter(status=Status.QUARANTINED)
        if until := self.candidate.until:  # a range, because SQLite stores fewer digits than Django sends
            quarantined = quarantined.filter(until__gt=until - TICK, until__lt=until + TICK)
        if not self._update(quarantined, **BACK_IN_SERVICE):
            return False
        grant = (self.model, self.using, self.pk, self.fence)
        emit(RowEvent(EventKind.RETURNED, *grant, reason=sentence_for("good_again"), actor=self._actor))
        return True

    def restore(self) -> None:
        """Release the resource in its former state: free, or in quarantine until the same time.

        Raises:
            LeaseLost: the lease was lost before.
        """
        if not self.candidate.is_quarantined:
            self.release()
            return
        settle = partial(verbs.settle_release, self._connection, self.model, self.pk, self.fence)
        requarantine = partial(
            self._rows().update, busy_before=_former_end(), fence=models.F("fence") + 1, holder=""
        )
        self._give_up(
            EventKind.RELEASED, "restored", lambda connection: retrying(connection, requarantine, settle=settle)
        )

    def _rows(self) -> ResourceQuerySet:
        return ResourceQuerySet(model=self.model, using=self.using).filter(pk=self.pk, fence=self.fence)

    def _update(self, rows: ResourceQuerySet, **values: Any) -> int:
        return int(retrying(self._connection, lambda: rows.update(**values)))

    def _emit(self, what: EventKind, connection: BaseDatabaseWrapper, reason: str = "") -> None:
        if what not in (EventKind.ACQUIRED, EventKind.RELEASED):
            super()._emit(what, connection, reason)


def lease_candidate(model: Any, candidate: Candidate, actor: str = "") -> CheckLease | None:
    """Lease this resource if it is unchanged since it was read, and not due to a waiter; never waits.

    Args:
        actor: the operator, for the history; "" for a program.

    Raises:
        ClaimInTransaction: a transaction is open, so other processes would not see the lease.
    """
    pool = model.pool
    holder = f"{default_holder()}/check"
    # Without the pool's cool-down and max_hold, which are for users of the resource.
    terms = Terms(TTL, holder, holder_is_unique=True, is_recorded=is_recorded(model))
    request = dataclasses.replace(pool.request(1, {"holder": holder}), terms=terms)
    refuse_open_transaction(connections[pool.using], is_allowed=request.allow_in_transaction)
    connection = connections[pool.using]
    if candidate.is_quarantined:
        grant = _claim_quarantined(connection, model, candidate, terms)
    else:
        is_given = _given_to_waiter(connection, model, candidate.pk)
        grant = None if is_given else verbs.claim(connection, model, candidate.pk, terms)
    if grant is None:
        return None
    # Emit the end of the expired lease, which this claim replaces.
    if candidate.holder and grant.fence == candidate.fence + 1:
        expired = (model, pool.using, candidate.pk, candidate.fence, candidate.holder)
        emit(RowEvent(EventKind.EXPIRED, *expired, sentence_for("acquired_since")))
    lease = CheckLease(pool, pool.using, grant, request)
    lease.candidate, lease._actor = candidate, actor
    return lease


def _given_to_waiter(connection: BaseDatabaseWrapper, model: Any, pk: Any) -> bool:
    """If this row is free, give it to the first waiter that it matches; return whether it was given."""
    if not tickets.in_line(connection, model, 1):
        return False
    free = verbs.rows_of(connection, model).available().filter(pk=pk).values_list("fence", flat=True)
    fence = retrying(connection, free.first)
    if fence is None:
        return False
    give = partial(release.give_to_first_match, connection, model, pk, fence, if_free=True)
    return retrying(connection, give, busy=lambda: False)


def _claim_quarantined(connection: Any, model: Any, candidate: Candidate, terms: Terms) -> Grant | None:
    """Claim a row in quarantine by one UPDATE, which compares the fence."""
    quarantined = ResourceQuerySet(model=model, using=connection.alias).quarantined()
    rows = quarantined.filter(pk=candidate.pk, fence=candidate.fence)
    values = {"busy_before": DbLater(terms.ttl), "fence": candidate.fence + 1, "holder": terms.holder}
    began_at = monotonic()

    def settle() -> int:
        if verbs.live_fences(connection, model, [candidate.pk], holder=terms.holder):
            return 1
        raise Unsettled

    updated = retrying(connection, lambda: rows.update(**values), settle=settle, busy=lambda: 0)
    return Grant(candidate.pk, candidate.fence + 1, terms.holder, began_at) if updated else None


def _former_end() -> models.Case:
    unchanged = models.When(status=Status.QUARANTINED, until__gt=DbNow(), then=models.F("until"))
    return models.Case(unchanged, default=DbNow())
