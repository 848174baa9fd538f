"""Judges the results that clients get: invariants 2, 5 and 6."""

from typing import Any

from resourcepool.exceptions import LeaseLost, LeaseReleased
from tests.simulation import schedule
from tests.simulation.ledger import Ledger
from tests.simulation.operation import Held, Operation

MARGIN = 0.1  # of the ttl: how much earlier than the database a holder stops trusting its lease


def renewed(operation: Operation, held: Held, outcome: Any) -> None:
    """Judge the result of a renewal or a guarded transaction."""
    if isinstance(outcome, LeaseLost):
        lost(operation, held, outcome)
    elif not isinstance(outcome, Exception):
        if not operation.was_live:
            blame(f"(5) {operation} was told that it holds what it had lost")
        confirmed(operation)


def given_up(operation: Operation, held: Held, kind: str, outcome: Any) -> bool:
    """Judge the result of a release, a quarantine or a hand-over; returns whether the handle has ended."""
    if isinstance(outcome, LeaseLost):
        lost(operation, held, outcome, kind)
    elif isinstance(outcome, Exception):
        return False
    elif not operation.did(kind) and not _may_be_taken_for_done(operation, held):
        blame(f"(5) {operation} was told that it was done, and it was not")
    if held.lease.is_held:
        blame(f"(5) {operation} is over, and the handle says that it is held")
    return True


def granted(operation: Operation, leases: list[Any]) -> None:
    """Judge the result of an acquisition: all rows that it was granted, and no others."""
    claims = {effect.after for effect in operation.did("claim")}
    returned = {(lease.pk, lease.fence) for lease in leases}
    if not returned <= claims:
        blame(f"(1) {operation} returned {returned}, and was granted {claims}")
    now = schedule.now_running().now
    if forgotten := [pair for pair in claims - returned if operation.ledger.is_live(pair, now)]:
        blame(f"(6) {operation} was granted {forgotten}, and did not return it")
    for pair in returned:
        operation.ledger.grants[pair].sent_by = operation.began_at


def served(operation: Operation, leases: list[Any]) -> None:
    """Judge the result of a waiting acquisition: the rows that it claimed, or that its ticket was given."""
    grants = operation.ledger.grants
    claims = {effect.after for effect in operation.did("claim")}
    for lease in leases:
        pair = lease.pk, lease.fence
        if pair not in claims:
            grant = grants.get(pair)
            is_its = grant is not None and grant.process is operation.process and grant.ticket is not None
            if not is_its or grants[pair].is_told or grants[pair].ticket.holder != lease.holder:  # type: ignore[union-attr]
                blame(f"(8) {operation} returned {pair}, and was not given it: {grant}")
            grants[pair].is_told = True
        grants[pair].sent_by = operation.began_at
    returned, now = {(lease.pk, lease.fence) for lease in leases}, schedule.now_running().now
    forgotten = [pair for pair in claims - returned if operation.ledger.is_live(pair, now)]
    if forgotten and not operation.cuts:
        blame(f"(6) {operation} was granted {forgotten}, and did not return it")


def handed(ledger: Ledger, process: Any, grants: list[Any]) -> None:
    """Judge the delivery of a ticket's rows to the waiter: it must get all of them."""
    now = schedule.now_running().now
    for grant in grants:
        pair = grant.pk, grant.fence
        known = ledger.grants.get(pair)
        if known is None or known.process is not process or known.ticket is None:
            blame(f"(8) a waiter is told of {pair}, which was not given to it")
        if len(grants) == 1 and not ledger.is_live(pair, now):
            blame(f"(2, 8) a waiter is told of {pair}, which has run out: {ledger.rows[pair[0]]}")


def confirmed(operation: Operation) -> None:
    """Note the latest start of the trust in the renewed leases."""
    if not operation.failures:
        for effect in operation.did("renew"):
            grant = operation.ledger.grants[effect.after]
            grant.sent_by, grant.lasts = max(grant.sent_by, operation.began_at), grant.ttl


def lost(operation: Operation, held: Held, error: LeaseLost, kind: str = "") -> None:
    """Judge a LeaseLost: it must be true, and the handle must be lost from now on."""
    if isinstance(error, LeaseReleased):
        if held.is_in_doubt:
            return
        blame(f"(6) {operation}: {error!r}, and nobody released it")
    if held.lease.is_held or not held.lease.lost.is_set():
        blame(f"(5) {operation}: {error!r}, and the handle does not know")
    was_live = [effect.was_live for effect in operation.did(kind)]
    if was_live != [False]:
        noticed(operation.ledger, held, is_live=True if was_live else None)


def noticed(ledger: Ledger, held: Held, *, is_live: bool | None = None) -> None:
    """Judge a lost handle, when the loss is first seen."""
    running = schedule.now_running()
    if is_live is None:
        is_live = ledger.is_live(held.pair, running.now)
    grant = ledger.grants[held.pair]
    since, lasts = running.monotonic() - grant.sent_by, min(held.ttl, grant.lasts / 1_000)
    # Renewals that may not have been confirmed are left out, and milliseconds are rounded.
    has_closed = since > lasts * (1 - MARGIN) - 0.001
    if not held.is_lost and is_live and not has_closed:
        blame(f"(5) {held.lease!r} was told to be lost, and it was not")
    held.is_lost = True


def blame(what: str) -> None:
    """End the schedule because of a violated invariant."""
    schedule.now_running().blame(what)


def _may_be_taken_for_done(operation: Operation, held: Held) -> bool:
    """Whether an earlier attempt did it, or the reply was lost and other processes have held the row since.

    In the latter case it is unknown whose statement was first: the row only shows that there were two or more.
    """
    if operation.ledger.grants[held.pair].ended_by is operation.process:
        return True
    pk, fence = held.pair
    next_one = operation.ledger.grants.get((pk, fence + 1))
    was_given_in_line = next_one is not None and next_one.ticket is not None
    return bool(operation.cuts) and (was_given_in_line or operation.ledger.rows[pk].fence >= fence + 2)
