"""Scans for free rows for the waiters of this process: rows that expired, or whose release did not look for waiters."""

from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.conf import ticket_ttl
from resourcepool.exceptions import BadOption
from resourcepool.leases.models import Model
from resourcepool.waiting import assignment, tickets
from resourcepool.waiting.handover import FIRST_TICKETS
from resourcepool.waiting.pacing import EMPTY_FOR, FIRST_IN_LINE, TOGETHER, scan_pause
from resourcepool.waiting.waiter import Waiter

WAITED_LONG = 1.0  # seconds after which waiters of other processes may be nearer


def scan(connection: BaseDatabaseWrapper, waiters: Sequence[Waiter], now: float) -> None:
    """Assign free rows in each line in which a waiter's scan is due."""
    for line in {waiter.line for waiter in waiters if waiter.next_scan <= now}:
        mine = [waiter for waiter in waiters if waiter.line == line]
        seconds = _assign(connection, mine[0].model, mine, now)
        for waiter in mine:
            # New waiters keep their own second scan, for rows that a release left free because it did not ask.
            if waiter.next_scan <= now or waiter.began + 2 * EMPTY_FOR < now:
                waiter.next_scan = now + seconds


def _assign(connection: BaseDatabaseWrapper, model: Model, mine: list[Waiter], now: float) -> float:
    """Assign free rows; return the seconds until the next scan.

    Only the nearest waiters scan at the moment when a lease may expire. The others scan now and then, because the
    nearest may be dead.
    """
    waited = max(now - waiter.began for waiter in mine)
    soonest, has_waited_long = scan_pause(waited), waited > WAITED_LONG
    for selector in {waiter.request.selector for waiter in mine}:
        alike = [waiter for waiter in mine if waiter.request.selector == selector]
        demand = sum(waiter.request.count for waiter in alike)
        if demand > len(alike) and has_waited_long:
            assignment.reclaim_from_later(connection, model, selector)
            for waiter in alike:
                _refuse_impossible(connection, waiter)  # the number of rows may have changed meanwhile
        on_time = True
        if has_waited_long or not alike[0].pacing.is_moving(now):
            on_time = _is_any_near(connection, model, selector, alike) or not has_waited_long
        # Many scan soon after their first look: for each other, they would try to give the same rows.
        own = None if has_waited_long else {ticket.pk for waiter in alike if (ticket := waiter.ticket)}
        seen = assignment.assign_free_rows(connection, model, selector, FIRST_TICKETS + demand, own).seen
        if seen.next_in is not None and on_time:
            soonest = min(soonest, max(seen.next_in, TOGETHER))
        if seen.free:
            soonest = min(soonest, ticket_ttl())  # a row given to a dead waiter is free then
        elif on_time:
            assignment.return_due_rows(model, connection.alias)
            if seen.next_in is None and model.line_per_name:
                _refuse_impossible(connection, alike[0])
    return soonest


def _refuse_impossible(connection: BaseDatabaseWrapper, waiter: Waiter) -> None:
    """Fail a waiter that can never be served; named rows that were removed as unused are created again."""
    try:
        waiter.source.refuse_impossible(connection, waiter.request)
    except BadOption as error:
        waiter.outcome.fail(error)


def _is_any_near(connection: BaseDatabaseWrapper, model: Model, selector: str, alike: list[Waiter]) -> bool:
    """Find out which of these waiters are among the first with their selector."""
    first = set(tickets.first(connection, model, selector, FIRST_IN_LINE))
    for waiter in alike:
        waiter.is_near = (ticket := waiter.ticket) is not None and ticket.pk in first
    return any(waiter.is_near for waiter in alike)
