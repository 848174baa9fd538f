"""Acquires leases: claims free rows at once, or waits in line."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
from resourcepool.database.background import own_turn
from resourcepool.database.clock import monotonic
from resourcepool.database.timeouts import STATEMENT_TIMEOUT, TIMEOUT_GRACE, statement_timeout
from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.leases.terms import Grant, default_holder
from resourcepool.threads.async_threads import in_thread
from resourcepool.threads.async_wakeup import periodic_wakeup
from resourcepool.threads.signal_safe_event import SignalSafeEvent
from resourcepool.waiting import assignment
from resourcepool.waiting.enqueue import enqueue, enqueue_or_claim, leave, served
from resourcepool.waiting.estimates import estimate_of, recent_waits, throttle
from resourcepool.waiting.lease import load, make_handles, release_quietly
from resourcepool.waiting.models import line_name
from resourcepool.waiting.request import Request, Source, refuse_open_transaction
from resourcepool.waiting.ticket_wakeups import ticket_wakeups
from resourcepool.waiting.waiter import Waiter, check_tickets
from resourcepool.waiting.waiters import waiters

POLL = 0.5  # seconds
SESSION_KEPT = 1.0  # seconds of waiting after which a session that this call opened is closed
TICKET_NOT_INSERTED = "the database did not store a ticket in that time: it is slow, or rows are locked"

Leases = list[Any]
Obtained = TypeVar("Obtained", Leases | Waiter, Leases | None)


def acquire(
    source: Source,
    request: Request,
    stop: Callable[[], bool] = lambda: False,
    on_enqueued: Callable[[], object] = lambda: None,
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
    waiter: Leases | Waiter | None = None
    leases: Leases | None = None
    connection = connections[source.using]
    had_session = connection.connection is not None and not request.ends_session
    try:
        with _limited(request):
            waiter = _begin(connection, source, request)
        if not isinstance(waiter, Waiter):
            return waiter
        on_enqueued()
        if not waiters.has_waiters(waiter.using):
            with _limited(request):
                leases = _look_here(waiter, stop)
        if leases is None:
            waiters.join(waiter)
            leases = _outcome(waiter, stop, had_session=had_session)
        if leases is None:
            leases = _too_late(waiter)
        recent_waits.note(waiter.line, waiter.using, had_to_wait=waiter.had_to_wait)
        return leases  # noqa: TRY300 (an interruption just here is caught, too)
    except BaseException:  # including TimeoutError, which a signal handler of the caller may raise
        if isinstance(waiter, Waiter):
            release_quietly(leave(waiter) if leases is None else leases)
        raise


def try_now(source: Source, request: Request) -> Leases | None:
    """Return the requested leases if they are free now, otherwise None; raises like ``acquire``."""
    connection = connections[source.using]
    refuse_open_transaction(connection, request)
    with statement_timeout():
        if not connection.in_atomic_block:
            # Waiters first: callers that do not wait must not overtake them.
            assignment.assign_to_all(connection, source.model, request.selector)
        grants = _at_once(connection, source, request)
    return None if grants is None else make_handles(source, connection.alias, request, grants)


async def aacquire(
    source: Source,
    request: Request,
    on_enqueued: Callable[[], Awaitable[object]] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Leases:
    """``acquire`` for asyncio; waiting does not block a thread. ``stop`` is a plain function."""
    loop = asyncio.get_running_loop()
    obtained: Leases | Waiter = await in_thread(_loaded, _begin_here, loop, source, request, undo=_undo)
    if not isinstance(obtained, Waiter):
        return obtained
    waiter = obtained
    try:
        if on_enqueued is not None:
            await on_enqueued()
        waiter.loop = loop
        waiters.join(waiter)
        try:
            async with asyncio.timeout(waiter.began + request.timeout - monotonic()):
                leases = await _awaited(waiter, stop)
        except TimeoutError as error:
            leases = await in_thread(_too_late, waiter, error)
        recent_waits.note(waiter.line, waiter.using, had_to_wait=waiter.had_to_wait)
    except BaseException:
        if granted := leave(waiter):  # it was served before, or just now
            await in_thread(release_quietly, granted)
        raise
    return leases


async def atry_now(source: Source, request: Request) -> Leases | None:
    """``try_now`` for asyncio."""
    return await in_thread(_loaded, try_now, asyncio.get_running_loop(), source, request, undo=_undo)


def _limited(request: Request) -> statement_timeout:
    """Limit the statements in this block, so that none delays the caller much beyond its ``timeout``."""
    return statement_timeout(min(STATEMENT_TIMEOUT, request.timeout + TIMEOUT_GRACE))


def _begin_here(source: Source, request: Request) -> Leases | Waiter:
    return _begin(connections[source.using], source, request)


def _begin(connection: BaseDatabaseWrapper, source: Source, request: Request) -> Leases | Waiter:
    """Return leases of free rows, or a waiter in line for them."""
    if request.fifo_once:
        return enqueue(connection, Waiter(source, connection.alias, request, request.terms.holder))
    if not request.timeout or connection.in_atomic_block:
        # No waiting in a transaction: the waiters' thread uses another connection, which cannot see it.
        if (leases := try_now(source, request)) is None:
            raise source.timed_out(request, "", None)
        return leases
    if not connection.autocommit:
        refuse_open_transaction(connection, request)
    began, alias, db_error, grants = monotonic(), connection.alias, None, None
    has_to_wait = recent_waits.until and recent_waits.is_likely(
        line_name(source.model, request.selector), alias
    )
    if not has_to_wait and not (waiters.unavailable and waiters.error_on(alias)):
        try:
            grants = _at_once(connection, source, request)
        except DatabaseUnavailable as error:
            if error.is_login:
                raise  # usually wrong settings: waiting would not help, and would hide the cause
            db_error = error  # the database may be back in time
    if grants is None:
        holder = request.terms.holder or default_holder()
        waiter = Waiter(source, alias, request, holder, began=began, db_error=db_error)
        return waiter if db_error else enqueue_or_claim(connection, waiter)
    return make_handles(source, alias, request, grants)


def _at_once(connection: BaseDatabaseWrapper, source: Source, request: Request) -> list[Grant] | None:
    grants = source.claim_free(connection, request)
    if grants is None:
        throttle.return_due_rows(source.model, connection.alias)
    return grants


def _look_here(waiter: Waiter, stop: Callable[[], bool]) -> Leases | None:
    """Check the ticket in this thread at first: most waits are short, and the waiters' thread need not wake up."""
    until = min(waiter.next_scan, waiter.began + waiter.request.timeout)
    if waiter.ticket is None or waiter.request.count > 1:
        return None
    connection, wake_event = connections[waiter.using], SignalSafeEvent()
    ticket_wakeups.add(waiter.using, waiter.ticket.pk, wake_event)
    try:
        with own_turn() as turn:
            while (now := monotonic()) < until and not stop():
                is_far = waiter.next_check >= until
                was_woken = wake_event.wait(0.0 if is_far else min(max(0.0, waiter.next_check - now), POLL))
                if is_far and not was_woken:
                    break
                if was_woken or waiter.next_check <= monotonic():
                    with turn:
                        grants = [grants for _, grants in check_tickets(connection, [waiter])]
                    if grants:
                        estimate_of(waiter.line, waiter.using).note_wakeup(was_woken)
                        return served(waiter, grants[0])
                    if waiter.ticket is None:
                        break
    except DatabaseUnavailable as error:
        waiter.db_error = error
    return None


def _outcome(waiter: Waiter, stop: Callable[[], bool], *, had_session: bool) -> Leases | None:
    """Wait for the leases; None if the time is up first.

    Args:
        had_session: the thread had a session before the request; it may be in use, so it stays open.
    """
    until, now = waiter.began + waiter.request.timeout, monotonic()
    keeps_session_until = now + SESSION_KEPT
    while not waiter.is_done and not stop() and (left := until - now) > 0:
        # Wakes up periodically, because Python may miss a signal that arrives just as the main thread goes to sleep.
        waiter.outcome.wait(min(left, POLL))
        if (now := monotonic()) > keeps_session_until and not had_session:
            dialect.close_own_session(connections[waiter.using])
    return waiter.outcome.result() if waiter.is_done else None


async def _awaited(waiter: Waiter, stop: Callable[[], bool] | None) -> Leases:
    loop, is_done = asyncio.get_running_loop(), asyncio.Event()

    def wake_task() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, with the task
            loop.call_soon_threadsafe(is_done.set)

    waiter.outcome.add_done_callback(wake_task)
    if stop is None:
        with periodic_wakeup():
            await is_done.wait()
    while not is_done.is_set():
        if stop is not None and stop():
            raise TimeoutError
        with contextlib.suppress(TimeoutError):
            # Not ``wait_for``, which Python 3.11 may continue after a cancellation.
            async with asyncio.timeout(POLL):
                await is_done.wait()
    return waiter.outcome.result()


def _too_late(waiter: Waiter, error: TimeoutError | None = None) -> Leases:
    had_ticket = waiter.ticket is not None
    if waiter.request.fifo_once:
        waiters.decide(waiter)
    else:
        leave(waiter)
    if not waiter.outcome.is_cancelled:  # served, or failed, at the last moment
        return waiter.outcome.result()
    db_error = waiters.error_on(waiter.using) or waiter.db_error
    if db_error is None and not had_ticket:
        db_error = DatabaseUnavailable(TICKET_NOT_INSERTED)
    raise waiter.source.timed_out(waiter.request, waiter.holder, db_error) from error


def _undo(obtained: Leases | Waiter | None) -> None:
    release_quietly(leave(obtained) if isinstance(obtained, Waiter) else obtained)


def _loaded(
    obtain: Callable[[Source, Request], Obtained],
    loop: asyncio.AbstractEventLoop,
    source: Source,
    request: Request,
) -> Obtained:
    """Obtain leases and read their rows: under asyncio, ``lease.resource`` must not query the database."""
    with _limited(request):
        obtained = obtain(source, request)
    if isinstance(obtained, list):
        try:
            load(obtained, loop)
        except BaseException:
            release_quietly(obtained)
            raise
    return obtained
