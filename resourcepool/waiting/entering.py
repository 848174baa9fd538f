"""Takes a place in line: a ticket, and then one look at free rows."""

import random
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.database.clock import monotonic
from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.leases import verbs
from resourcepool.leases.terms import Grant
from resourcepool.waiting import giving_out, tickets
from resourcepool.waiting.contention import acquiring, releasing, speed_of
from resourcepool.waiting.lease import abandon, handles
from resourcepool.waiting.request import refuse_open_transaction
from resourcepool.waiting.waiter import Waiter
from resourcepool.waiting.waiters import waiters

JUST_NOW = 0.1  # seconds
PLENTY = 3  # rows that are left free; of fewer, others claim most

Leases = list[Any]


def stand_in_line(connection: BaseDatabaseWrapper, waiter: Waiter) -> Leases | Waiter:
    """Return ``waiter`` in line, or its leases if they were free; raises BadOption when it can never be served."""
    try:
        waiter.source.refuse_impossible(connection, waiter.request)
        return _take_ticket(connection, waiter) or waiter
    except DatabaseUnavailable as error:
        waiter.trouble, waiter.is_taking = error, False
        if error.is_login and waiter.ticket is None:
            raise
        return waiter
    except BaseException:
        if waiter.ticket is not None or waiter.is_taking:
            leave(waiter)
        raise


def stand(connection: BaseDatabaseWrapper, waiter: Waiter) -> Waiter:
    """Take a ticket, and leave free rows alone; raises DatabaseUnavailable."""
    refuse_open_transaction(connection, waiter.request)
    try:
        waiter.is_taking = True
        waiter.has(tickets.take(connection, waiter.model, waiter.request, waiter.holder))
        return waiter  # noqa: TRY300 (an interruption just here is caught, too)
    except BaseException:
        leave(waiter)
        raise


def _take_ticket(connection: BaseDatabaseWrapper, waiter: Waiter) -> Leases | None:
    """Take a ticket; returns the leases from the one look at free rows that follows.

    That closes the race with a release that did not see the ticket. If a release has just found others in line,
    usually nothing is free: then only some waiters look now, and the others later (``Waiter.free_at``).
    """
    if waiters.trouble(waiter.using) is not None:
        return None  # others wait for the database already; trying here would take the time of retries
    waiter.is_taking = True
    line, using = waiter.line, waiter.using
    waiter.has(tickets.take(connection, waiter.model, waiter.request, waiter.holder))
    if releasing.is_likely(line, using, JUST_NOW) and random.random() > speed_of(line, using).share_of_looks:  # noqa: S311
        return None
    return _look_at_free(connection, waiter)


def _look_at_free(connection: BaseDatabaseWrapper, waiter: Waiter) -> Leases | None:
    """Give free rows to the line; returns the leases if the waiter got all of its own."""
    model, request, ticket = waiter.model, waiter.request, waiter.ticket
    assert ticket is not None  # noqa: S101 (for the type checker)
    # One try: if others come at the same time, they give the same rows to the same tickets.
    seen, given = giving_out.give_out(connection, model, request.selector, tries=1)
    rows = given.get(ticket.pk, ())
    is_served = len(rows) >= request.count
    if is_served or len(seen.free) >= len(given) + PLENTY:  # a claim would have had one, for less work
        waiter.had_to_wait = False
        acquiring.note(waiter.line, waiter.using, had_to_wait=False)
    if not is_served:
        return None
    sent_at, lasts = ticket.sent_at, ticket.lasts
    if len(rows) > 1:  # some may have been given by others, at unknown times
        sent_at, lasts = monotonic(), request.terms.ttl
        if verbs.renew(connection, model, rows, lasts) < len(rows):
            return None
    return served(waiter, [Grant(pk, fence, waiter.holder, sent_at, lasts) for pk, fence in rows])


def served(waiter: Waiter, grants: list[Grant]) -> Leases:
    """Return the leases of these grants, and have the waiter's ticket removed."""
    leases = handles(waiter.source, waiter.using, waiter.request, grants)
    try:
        waiters.used(waiter)  # only now: an interrupted waiter passes on the rows of its ticket
    except BaseException:
        abandon(leases)
        raise
    return leases


def leave(waiter: Waiter) -> Leases:
    """Take ``waiter`` out of the line, whatever its outcome; returns the leases it got before."""
    if waiter.outcome.give_up():  # asked first: every other answer may change meanwhile
        waiters.see_off(waiter)
    return waiter.outcome.leases
