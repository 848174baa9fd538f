"""Enqueues a caller: takes a ticket, and then scans once for free rows."""

import random
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.database.clock import monotonic
from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.leases import verbs
from resourcepool.leases.terms import Grant
from resourcepool.waiting import assignment, tickets
from resourcepool.waiting.estimates import estimate_of, recent_waiters, recent_waits
from resourcepool.waiting.lease import make_handles, release_quietly
from resourcepool.waiting.request import refuse_open_transaction
from resourcepool.waiting.waiter import Waiter
from resourcepool.waiting.waiters import waiters

RECENTLY = 0.1  # seconds
MANY_FREE = 3  # if this many rows stay free, the caller counts as not having waited

Leases = list[Any]


def enqueue_or_claim(connection: BaseDatabaseWrapper, waiter: Waiter) -> Leases | Waiter:
    """Enqueue ``waiter`` and return it, or its leases if rows are free; raises BadOption if it can never be served."""
    try:
        waiter.source.refuse_impossible(connection, waiter.request)
        return _take_ticket(connection, waiter) or waiter
    except DatabaseUnavailable as error:
        waiter.db_error, waiter.insert_in_doubt = error, False
        if error.is_login and waiter.ticket is None:
            raise
        return waiter
    except BaseException:
        if waiter.ticket is not None or waiter.insert_in_doubt:
            leave(waiter)
        raise


def enqueue(connection: BaseDatabaseWrapper, waiter: Waiter) -> Waiter:
    """Take a ticket, without a scan for free rows; raises DatabaseUnavailable."""
    refuse_open_transaction(connection, waiter.request)
    try:
        waiter.insert_in_doubt = True
        waiter.set_ticket(tickets.take(connection, waiter.model, waiter.request, waiter.holder))
        return waiter  # noqa: TRY300 (an interruption just here is caught, too)
    except BaseException:
        leave(waiter)
        raise


def _take_ticket(connection: BaseDatabaseWrapper, waiter: Waiter) -> Leases | None:
    """Take a ticket and scan once for free rows; returns the leases if that served the waiter.

    The scan closes the race with a release that did not see the ticket. If a release has just found other waiters, rows
    are rarely free: then only some waiters scan now, and the others later (``Waiter.next_scan``).
    """
    if waiters.error_on(waiter.using) is not None:
        return None  # the database is unavailable; a statement here would only take the time of its retries
    waiter.insert_in_doubt = True
    line, using = waiter.line, waiter.using
    waiter.set_ticket(tickets.take(connection, waiter.model, waiter.request, waiter.holder))
    is_crowded = recent_waiters.is_likely(line, using, RECENTLY)
    if is_crowded and random.random() > estimate_of(line, using).scan_probability:  # noqa: S311
        return None
    return _look_at_free(connection, waiter)


def _look_at_free(connection: BaseDatabaseWrapper, waiter: Waiter) -> Leases | None:
    """Assign free rows to the waiters; returns the leases if this waiter got all its rows."""
    model, request, ticket = waiter.model, waiter.request, waiter.ticket
    assert ticket is not None  # noqa: S101 (for the type checker)
    # One try: concurrent callers assign the same rows to the same tickets.
    seen, given = assignment.assign_free_rows(connection, model, request.selector, tries=1)
    rows = given.get(ticket.pk, ())
    is_served = len(rows) >= request.count
    # With that many free rows, a plain claim would have succeeded with less work.
    if is_served or len(seen.free) >= len(given) + MANY_FREE:
        waiter.had_to_wait = False
        recent_waits.note(waiter.line, waiter.using, had_to_wait=False)
    if not is_served:
        return None
    sent_at, grant_seconds = ticket.sent_at, ticket.grant_seconds
    if len(rows) > 1:  # other processes may have given some, at unknown times
        sent_at, grant_seconds = monotonic(), request.terms.ttl
        if verbs.renew(connection, model, rows, grant_seconds) < len(rows):
            return None
    return served(waiter, [Grant(pk, fence, waiter.holder, sent_at, grant_seconds) for pk, fence in rows])


def served(waiter: Waiter, grants: list[Grant]) -> Leases:
    """Return the leases of these grants; the waiter's ticket is removed later."""
    leases = make_handles(waiter.source, waiter.using, waiter.request, grants)
    try:
        waiters.used(waiter)  # last: if interrupted before, the waiter passes on the rows of its ticket
    except BaseException:
        release_quietly(leases)
        raise
    return leases


def leave(waiter: Waiter) -> Leases:
    """Remove ``waiter`` from the line; returns the leases that it got before."""
    if waiter.outcome.cancel():  # first, because it settles the outcome
        waiters.cancel(waiter)
    return waiter.outcome.leases
