"""Assigns rows that became free without a release to waiters: after expiry or quarantine, new, or back in service.

Any process that scans does this. A released row goes to the first waiter at once (``handover``).
"""

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from django.db import DatabaseError, InterfaceError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.clock import monotonic
from resourcepool.db.retry import retrying
from resourcepool.db.timeouts import statement_timeout
from resourcepool.exceptions import ResourcePoolError
from resourcepool.leases.free_rows import MAX_FREE_ROWS, FreeRows, read_free_rows
from resourcepool.leases.models import Model
from resourcepool.waiting import handover, tickets
from resourcepool.waiting.handover import FIRST_TICKETS
from resourcepool.waiting.tickets import HeldRows, WaitingTicket

MAX_TRIES = 2  # per row, and per ticket
RETURN_EVERY = 5.0  # seconds between two returns of due rows to service

_returned_at: dict[tuple[Model, str], float] = {}


def allot(
    line: Sequence[WaitingTicket],
    free: Mapping[str, Sequence[Any]],
    take: Callable[[WaitingTicket, Any], bool] = lambda ticket, pk: True,
    tries: int = MAX_TRIES,
) -> dict[int, list[Any]]:
    """Assign free rows to tickets; returns {ticket: primary keys}.

    A ticket takes the first rows that match its selector and that no earlier ticket took. A ticket for several rows
    keeps the rows it gets, even if it needs more; otherwise it would starve behind tickets for one row.

    Args:
        line: the tickets in the order of service.
        free: the free rows that match each selector, in the order of assignment.
        take: gives a row to a ticket. False: row or ticket changed concurrently. Then the ticket tries another row, and
            the next ticket this row; each is skipped after ``tries``.
    """
    taken: set[Any] = set()
    failed: Counter[Any] = Counter()
    given: dict[int, list[Any]] = {}
    for ticket in line:
        rows: list[Any] = []
        lacks, failures = ticket.lacks, 0
        for pk in free.get(ticket.selector, ()):
            if len(rows) == lacks or failures == tries:
                break
            if pk in taken or failed[pk] == tries:
                continue
            if take(ticket, pk):
                taken.add(pk)
                rows.append(pk)
            else:
                failures += 1
                failed[pk] += 1
        if rows:
            given[ticket.pk] = rows
    return given


class Assigned(NamedTuple):
    """What ``assign_free_rows`` did.

    Attributes:
        seen: the rows that were free for the selector before.
        given: {ticket: its rows now} of the tickets that got some.
        spare: number of these free rows that no ticket was due.
    """

    seen: FreeRows
    given: dict[int, HeldRows]
    spare: int


def assign_free_rows(
    connection: BaseDatabaseWrapper,
    model: Model,
    selector: str = "{}",
    most: int = FIRST_TICKETS,
    only: Collection[int] | None = None,
) -> Assigned:
    """Give free rows to the first matching waiters.

    Args:
        most: maximum number of free rows to read.
        only: give only the rows that are due to these tickets; the owners of earlier tickets scan themselves.

    Raises:
        DatabaseUnavailable: some rows may have been given.
    """
    served, due = dict[int, WaitingTicket](), set[Any]()
    seen = read_free_rows(connection, model, model.where(selector, connection), most)
    if seen.free and (line := tickets.in_line(connection, model, selector=selector)):
        by_selector = {selector: seen}
        for other in {ticket.selector for ticket in line} - {selector}:
            by_selector[other] = read_free_rows(connection, model, model.where(other, connection), len(line))
        fences = {pk: fence for rows in by_selector.values() for pk, fence in rows.free.items()}

        def take(ticket: WaitingTicket, pk: Any) -> bool:
            if only is not None and ticket.pk not in only:
                due.add(pk)
                return True
            ticket = served.get(ticket.pk, ticket)
            given = _give_free(connection, model, pk, fences[pk], ticket)
            if given:
                due.add(pk)
                served[ticket.pk] = ticket.given(pk, fences[pk] + 1)
            return given

        allot(line, {wanted: list(rows.free) for wanted, rows in by_selector.items()}, take)
    given = {pk: ticket.holds for pk, ticket in served.items()}
    return Assigned(seen, given, len(seen.free.keys() - due))


def return_due_rows(model: Model, using: str) -> None:
    """Return due rows to service, now and then; called when no row is free."""
    now = monotonic()
    if now > _returned_at.get((model, using), -math.inf) + RETURN_EVERY:
        _returned_at[model, using] = now
        model.return_due_rows(using)


def assign_to_all(connection: BaseDatabaseWrapper, model: Model, selector: str = "{}") -> None:
    """Assign free rows to all waiters in the line of ``selector``; raises like ``assign_free_rows``."""
    for wanted in tickets.selectors(connection, model, selector):
        assign_free_rows(connection, model, wanted, MAX_FREE_ROWS)


def assign_quietly(using: str, model: Model, selectors: Iterable[str] = ("{}",)) -> None:
    """Assign free rows to waiters with these selectors; ignores errors, because the waiters scan themselves."""
    with contextlib.suppress(DatabaseError, InterfaceError, ResourcePoolError), statement_timeout():
        for selector in selectors:
            assign_free_rows(connections[using], model, selector, MAX_FREE_ROWS)


def _give_free(
    connection: BaseDatabaseWrapper, model: Model, pk: Any, fence: int, ticket: WaitingTicket
) -> bool:
    send = partial(handover.give, connection, model, pk, fence, ticket, if_free=True)
    return retrying(connection, send, busy=lambda: False)


def reclaim_from_later(connection: BaseDatabaseWrapper, model: Model, selector: str = "{}") -> None:
    """Reclaim rows collected by tickets for several rows, if tickets with a better priority need them.

    Otherwise two such tickets could wait for each other's rows. Takes all needed rows in one turn, beginning with the
    last ticket in line.

    Raises:
        DatabaseUnavailable: some rows may have been reclaimed.
    """
    line = tickets.in_line(connection, model, selector=selector)
    lacking = {ticket.pk: ticket.lacks for ticket in line}
    for number in range(len(line) - 1, 0, -1):
        before, ticket = line[:number], line[number]
        for row in ticket.holds:
            needy = [earlier for earlier in before if lacking[earlier.pk] > 0]
            wanted = {earlier.selector for earlier in needy}
            matching = handover.matching_selectors(connection, model, row, wanted) if needy else ()
            next_owner = next((earlier for earlier in needy if earlier.selector in matching), None)
            if next_owner is None:
                continue
            left = ticket.without(row)
            send = partial(handover.take_from, connection, model, row, ticket, left.holds)
            if not retrying(connection, send):
                break  # changed concurrently: the next turn tries again
            ticket = left
            lacking[next_owner.pk] -= 1
