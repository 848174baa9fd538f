"""The lease of a check, and how the resource is given back."""

import dataclasses
import datetime
from functools import partial
from typing import Any

from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.clock import monotonic
from resourcepool.database.retry import Unsettled, retrying
from resourcepool.dialect import DbLater, DbNow
from resourcepool.events import sentence_for
from resourcepool.health_checks.candidates import Candidate
from resourcepool.health_checks.checker import Finding
from resourcepool.leases import verbs
from resourcepool.leases.terms import Grant, Terms, default_holder
from resourcepool.resources.lease import ResourceLease
from resourcepool.resources.queryset import BACK_IN_SERVICE, ResourceQuerySet
from resourcepool.resources.state import Status
from resourcepool.signals import EventKind, RowEvent, emit, is_recorded
from resourcepool.waiting import handover, tickets
from resourcepool.waiting.request import refuse_open_transaction

TICK = datetime.timedelta(milliseconds=1)
TTL = 60.0  # seconds after which the resource of a dead checker is free, also if it was in quarantine


class CheckLease(ResourceLease):
    """Held while a resource is checked. It has one event, the check, and none of acquisition and release."""

    candidate: Candidate

    def note(self, finding: Finding) -> bool:
        """Write the finding into the row; False when the lease was lost, and nothing was written."""
        found = {"verdict": finding.verdict, "latency": finding.seconds, "checked_at": DbNow()}
        if not self._update(self._mine(), **found):
            return False
        self._tell_check(finding)
        return True

    def return_to_service(self) -> bool:
        """End the quarantine it was found in, unless an operator has changed that; returns whether."""
        parked = self._mine().filter(status=Status.QUARANTINED)
        if until := self.candidate.until:  # not equal: SQLite keeps fewer digits than Django sends
            parked = parked.filter(until__gt=until - TICK, until__lt=until + TICK)
        if not self._update(parked, **BACK_IN_SERVICE):
            return False
        who = (self.model, self.using, self.pk, self.fence)
        emit(RowEvent(EventKind.RETURNED, *who, reason=sentence_for("good_again"), actor=self.actor))
        return True

    def restore(self) -> None:
        """Give the resource back as it was found: free, or in quarantine for as long as before.

        Raises:
            LeaseLost: it was lost before.
        """
        if not self.candidate.is_quarantined:
            self.release()
            return
        settle = partial(verbs.settle_release, self._connection, self.model, self.pk, self.fence)
        park = partial(self._mine().update, busy_before=_as_before(), fence=models.F("fence") + 1, holder="")
        self._give_up(
            EventKind.RELEASED, "put back", lambda connection: retrying(connection, park, settle=settle)
        )

    def _mine(self) -> ResourceQuerySet:
        return ResourceQuerySet(model=self.model, using=self.using).filter(pk=self.pk, fence=self.fence)

    def _update(self, rows: ResourceQuerySet, **values: Any) -> int:
        return int(retrying(self._connection, lambda: rows.update(**values)))

    def _tell_check(self, finding: Finding) -> None:
        verdict = sentence_for(finding.verdict)
        reason = sentence_for("about", name=verdict, why=finding.why) if finding.why else verdict
        who = (self.model, self.using, self.pk, self.fence, self.holder)
        emit(RowEvent(EventKind.CHECKED, *who, reason=reason, actor=self.actor, seconds=finding.seconds))

    def _emit(self, what: EventKind, connection: BaseDatabaseWrapper, reason: str = "") -> None:
        if what not in (EventKind.ACQUIRED, EventKind.RELEASED):
            super()._emit(what, connection, reason)


def lease_candidate(model: Any, candidate: Candidate, actor: str = "") -> CheckLease | None:
    """Lease this resource if it is unchanged since it was read, and no waiter is entitled to it; never waits.

    Args:
        actor: the operator, for the history; "" for a program.

    Raises:
        ClaimInTransaction: a transaction is open: nobody else would see the lease before its end.
    """
    pool = model.pool
    holder = f"{default_holder()}/check"
    # Not the pool's terms: its cool-down and max_hold are for users of the resource.
    terms = Terms(TTL, holder, holder_is_unique=True, is_recorded=is_recorded(model))
    asked = dataclasses.replace(pool.request(1, {"holder": holder}), terms=terms)
    refuse_open_transaction(connections[pool.using], asked)
    connection = connections[pool.using]
    if candidate.is_quarantined:
        grant = _take_parked(connection, model, candidate, terms)
    else:
        is_due = _given_to_somebody(connection, model, candidate.pk)
        grant = None if is_due else verbs.claim(connection, model, candidate.pk, terms)
    if grant is None:
        return None
    # Report the end of the last lease: nobody else will.
    if candidate.holder and grant.fence == candidate.fence + 1:
        who = (model, pool.using, candidate.pk, candidate.fence, candidate.holder)
        emit(RowEvent(EventKind.EXPIRED, *who, sentence_for("acquired_since")))
    lease = CheckLease(pool, pool.using, grant, asked)
    lease.candidate, lease.actor = candidate, actor
    return lease


def _given_to_somebody(connection: BaseDatabaseWrapper, model: Any, pk: Any) -> bool:
    """Give this row, and no other, to the first waiter that it fits if it is free; return whether it was given."""
    if not tickets.in_line(connection, model, 1):
        return False
    free = verbs.rows_of(connection, model).available().filter(pk=pk).values_list("fence", flat=True)
    fence = retrying(connection, free.first)
    if fence is None:
        return False
    give = partial(handover.give_to_first_match, connection, model, pk, fence, if_free=True)
    return retrying(connection, give, busy=lambda: False)


def _take_parked(connection: Any, model: Any, candidate: Candidate, terms: Terms) -> Grant | None:
    """Claim a row in quarantine by one UPDATE, which compares the fence it was read with."""
    parked = ResourceQuerySet(model=model, using=connection.alias).quarantined()
    rows = parked.filter(pk=candidate.pk, fence=candidate.fence)
    values = {"busy_before": DbLater(terms.ttl), "fence": candidate.fence + 1, "holder": terms.holder}
    began_at = monotonic()

    def settle() -> int:
        if verbs.live_fences(connection, model, [candidate.pk], holder=terms.holder):
            return 1
        raise Unsettled

    taken = retrying(connection, lambda: rows.update(**values), settle=settle, busy=lambda: 0)
    return Grant(candidate.pk, candidate.fence + 1, terms.holder, began_at) if taken else None


def _as_before() -> models.Case:
    still = models.When(status=Status.QUARANTINED, until__gt=DbNow(), then=models.F("until"))
    return models.Case(still, default=DbNow())
