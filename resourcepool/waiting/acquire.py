"""Acquires leases: claim; if nothing is free, take a ticket and look at it; who releases gives the row to the first.

A claim is one UPDATE of a free row (``Source.claim_free``). Who had to wait a moment ago takes a ticket first: a claim
would probably fail. After the ticket comes one scan, for rows that were freed before the ticket was visible. Then the
caller waits: ``poll`` looks at the ticket now and then (``pacing``), until a release (``release``), or a scan by any
waiter (``assignment``), has given it a row.
"""

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.clock import monotonic
from resourcepool.db.open_transaction import refuse_open_transaction
from resourcepool.db.sync_async import Mode, never
from resourcepool.db.threads import periodic_wakeup
from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.leases import verbs
from resourcepool.leases.terms import Grant, Request, default_holder
from resourcepool.waiting import assignment, tickets
from resourcepool.waiting.pacing import FIRST_IN_LINE
from resourcepool.waiting.poll import POLL, poller_on
from resourcepool.waiting.source import (
    NoneFree,
    Source,
    can_wait,
    claim,
    limited,
    make_handles,
    release_quietly,
)
from resourcepool.waiting.waiter import Waiter

TICKET_NOT_INSERTED = "the database did not store a ticket in that time: it is slow, or rows are locked"

Leases = list[Any]
Loop = asyncio.AbstractEventLoop


async def acquire(
    mode: Mode,
    source: Source,
    request: Request,
    stop: Callable[[], bool] = never,
    on_enqueued: Callable[[Mode], Awaitable[object]] | None = None,
) -> Leases:
    """Return the requested leases, waiting up to ``request.timeout`` or until ``stop()``.

    Args:
        on_enqueued: called once the caller's ticket is visible to other processes; its exceptions end the wait.

    Raises:
        AcquireTimeout: the rows did not become free in time; nothing is held.
        ClaimInTransaction: a transaction is open, and the request does not allow it.
        BadOption: the request can never be filled.
        DatabaseUnavailable: only without waiting, or if the database refuses the login of a caller without a ticket.
    """
    made: list[Waiter] = []
    return await _wait(mode, made, partial(_begin, made, source, request, mode.loop), stop, on_enqueued)


async def wait_for(mode: Mode, source: Source, request: Request, none_free: NoneFree) -> Leases:
    """``acquire``, after ``claim`` got no rows."""
    made: list[Waiter] = []
    return await _wait(mode, made, partial(_enqueue, made, source, request, mode.loop, none_free))


async def acquire_now(mode: Mode, source: Source, request: Request) -> Leases | None:
    """Return the requested leases if they are free now, otherwise None; raises like ``acquire``."""
    return await mode.call(_claim_now, source, request, mode.loop, undo=release_quietly)


def leave(waiter: Waiter) -> Leases:
    """Remove ``waiter`` from the line; returns the leases that it got before."""
    waiter.outcome.cancel()  # first, because it settles the outcome
    if not waiter.outcome.leases:
        poller_on(waiter.using).leave(waiter)
    return waiter.outcome.leases


def _undo(begun: Leases | Waiter) -> None:
    release_quietly(leave(begun) if isinstance(begun, Waiter) else begun)


def _claim_now(source: Source, request: Request, loop: Loop | None) -> Leases | None:
    claimed = claim(source, request, loop, waits=False)
    return claimed if isinstance(claimed, list) else None


def _begin(made: list[Waiter], source: Source, request: Request, loop: Loop | None) -> Leases | Waiter:
    """Return leases of free rows, or a waiter in line for them; ``made``: see ``_enqueue``."""
    if request.fifo_once:
        none_free = NoneFree(connections[source.using], monotonic(), had_session=False)
        return _enqueue(made, source, request, loop, none_free)
    claimed = claim(source, request, loop)
    return claimed if isinstance(claimed, list) else _enqueue(made, source, request, loop, claimed)


def _enqueue(
    made: list[Waiter], source: Source, request: Request, loop: Loop | None, none_free: NoneFree
) -> Leases | Waiter:
    """Take a ticket and scan once for free rows; return the waiter, or its leases if the scan served it.

    The scan closes the race with a release that did not see the ticket.

    Args:
        made: gets the waiter before it has a ticket, for a caller whom Ctrl-C keeps from getting the result.
    """
    connection, began, had_session, db_error = none_free
    if request.fifo_once:
        refuse_open_transaction(connection, is_allowed=request.allow_in_transaction)
    elif not can_wait(connection, request):
        raise source.timed_out(request, "", None)
    holder = request.terms.holder or default_holder()
    waiter = Waiter(source, connection.alias, request, holder, loop, began=began, db_error=db_error)
    waiter.keeps_session = had_session and not request.ends_session
    made.append(waiter)
    if db_error is not None:
        return waiter  # the database may be back in time
    with limited(request):
        try:
            return _take_ticket(connection, waiter) or waiter
        except DatabaseUnavailable as error:
            waiter.db_error, waiter.insert_in_doubt = error, False
            if request.fifo_once or (error.is_login and waiter.ticket is None):
                raise
            return waiter
        except BaseException:
            leave(waiter)
            raise


def _take_ticket(connection: BaseDatabaseWrapper, waiter: Waiter) -> Leases:
    """Take a ticket, and scan once; return the leases if that served it."""
    poller, request = poller_on(waiter.using), waiter.request
    if not request.fifo_once:
        waiter.source.refuse_impossible(connection, request)
    if poller.db_error is not None:
        return []  # a statement here would only take the time of its retries
    if waiter.loop is not None:
        poller.start()
    is_crowded, waiter.insert_in_doubt = waiter.pacing.crowded_until > monotonic(), True
    waiter.set_ticket(tickets.take(connection, waiter.model, request, waiter.holder))
    if request.fifo_once or is_crowded or not (grants := _scan(connection, waiter)):
        return []
    leases = make_handles(waiter.source, waiter.using, request, grants, waiter.loop)
    poller.turns.use(waiter)  # last: if interrupted before, the waiter passes on the rows of its ticket
    return leases


async def _wait(
    mode: Mode,
    made: list[Waiter],
    begin: Callable[[], Leases | Waiter],
    stop: Callable[[], bool] = never,
    on_enqueued: Callable[[Mode], Awaitable[object]] | None = None,
) -> Leases:
    """Return what ``begin`` got; if it is a waiter, its leases as soon as it is served; ``made``: see ``_enqueue``."""
    waiter: Waiter | None = None
    try:
        begun = await mode.call(begin, undo=_undo)
        if isinstance(begun, list):
            return begun
        waiter = begun
        if on_enqueued is not None:
            await on_enqueued(mode)
        wait = partial(poller_on(waiter.using).wait, waiter, stop)
        await mode.either(wait, partial(_wait_in_task, waiter, stop))
        if not waiter.is_done:
            await mode.call(_too_late, waiter)
        return waiter.outcome.result()
    except BaseException:  # including TimeoutError, which a signal handler of the caller may raise
        for each in made:
            # The thread that works for a cancelled task undoes what it began.
            if (each is waiter or mode.loop is None) and (granted := leave(each)):
                await mode.call(release_quietly, granted)  # it was served before, or just now
        raise


def _scan(connection: BaseDatabaseWrapper, waiter: Waiter) -> list[Grant] | None:
    """Give this waiter the free rows that are due to it; return the grants if it has got all its rows."""
    model, request, ticket = waiter.model, waiter.request, waiter.ticket
    assert ticket is not None  # noqa: S101 (for the type checker)
    assigned = assignment.assign_free_rows(connection, model, request.selector, only=[ticket.pk])
    rows = assigned.given.get(ticket.pk, ())
    if len(rows) >= request.count or assigned.spare >= FIRST_IN_LINE:
        waiter.pacing.found_free()  # a claim would have succeeded with less work
    if len(rows) < request.count:
        return None
    sent_at, seconds = ticket.sent_at, ticket.grant_seconds
    if len(rows) > 1:  # other processes may have given some, at unknown times
        sent_at, seconds = monotonic(), request.terms.ttl
        if verbs.renew(connection, model, rows, seconds) < len(rows):
            return None
    return [Grant(pk, fence, waiter.holder, sent_at, seconds) for pk, fence in rows]


async def _wait_in_task(waiter: Waiter, stop: Callable[[], bool]) -> None:
    loop, is_done, poller = asyncio.get_running_loop(), asyncio.Event(), poller_on(waiter.using)

    def wake_task() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, with the task
            loop.call_soon_threadsafe(is_done.set)

    waiter.outcome.add_done_callback(wake_task)
    poller.join(waiter)
    seconds = waiter.ends_at - monotonic()
    with periodic_wakeup(), contextlib.suppress(TimeoutError):
        async with asyncio.timeout(None if math.isinf(seconds) else seconds):
            while not (waiter.is_done or stop()):
                with contextlib.suppress(TimeoutError):
                    # Not ``wait_for``, which Python 3.11 may continue after a cancellation.
                    async with asyncio.timeout(None if stop is never else POLL):
                        await is_done.wait()


def _too_late(waiter: Waiter) -> None:
    """Give up a waiter whose time is up; raises AcquireTimeout unless it was served, or failed, at the last moment."""
    poller, had_ticket = poller_on(waiter.using), waiter.ticket is not None
    with limited(waiter.request):
        if waiter.request.fifo_once:
            poller.decide(waiter)
        else:
            leave(waiter)
    if waiter.outcome.is_cancelled:
        db_error = poller.db_error or waiter.db_error
        if db_error is None and not had_ticket:
            db_error = DatabaseUnavailable(TICKET_NOT_INSERTED)
        raise waiter.source.timed_out(waiter.request, waiter.holder, db_error)
