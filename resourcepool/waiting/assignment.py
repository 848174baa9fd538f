"""Gives out rows that come free by themselves: expiry, the end of a quarantine, a new row, a row back in service.

Any process that looks does this. A released row goes to the first waiter in line at once (``handover``).
"""

import contextlib
from collections.abc import Iterable
from functools import partial
from typing import Any

from django.db import DatabaseError, InterfaceError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.database.retry import retrying
from resourcepool.database.timeouts import statement_timeout
from resourcepool.exceptions import ResourcePoolError
from resourcepool.leases.table import Model
from resourcepool.waiting import handover, tickets
from resourcepool.waiting.allot import MAX_TRIES, WaitingTicket, allot
from resourcepool.waiting.free_rows import MAX_FREE_ROWS, FreeRows, read_free_rows
from resourcepool.waiting.handover import FIRST_TICKETS
from resourcepool.waiting.tickets import HeldRows


def assign_free_rows(
    connection: BaseDatabaseWrapper,
    model: Model,
    selector: str = "{}",
    most: int = FIRST_TICKETS,
    tries: int = MAX_TRIES,
) -> tuple[FreeRows, dict[int, HeldRows]]:
    """Give free rows to the waiters that are due.

    Args:
        most: how many free rows are looked at.
        tries: see ``allot``; for a line of one it is always ``MAX_TRIES``.

    Returns:
        The rows that were free for ``selector``; and {ticket: the rows that it has now} of the tickets that got some.

    Raises:
        DatabaseUnavailable: some rows may have been given.
    """
    served: dict[int, WaitingTicket] = {}
    seen = read_free_rows(connection, model, model.where(selector, connection), most)
    if seen.free and (line := tickets.in_line(connection, model, selector=selector)):
        found = {selector: seen}
        for other in {ticket.selector for ticket in line} - {selector}:
            found[other] = read_free_rows(connection, model, model.where(other, connection), len(line))
        fences = {pk: fence for one in found.values() for pk, fence in one.free.items()}

        def take(ticket: WaitingTicket, pk: Any) -> bool:
            ticket = served.get(ticket.pk, ticket)
            given = _give_free(connection, model, pk, fences[pk], ticket)
            if given:
                served[ticket.pk] = ticket.given(pk, fences[pk] + 1)
            return given

        if len(line) == 1:
            tries = MAX_TRIES  # nobody behind it would take what is free beyond a locked row
        allot(line, {wanted: list(one.free) for wanted, one in found.items()}, take, tries)
    return seen, {pk: ticket.holds for pk, ticket in served.items()}


def assign_to_all(connection: BaseDatabaseWrapper, model: Model, selector: str = "{}") -> None:
    """Give all who stand in line with ``selector`` the rows they are due; raises as ``assign_free_rows``."""
    for wanted in tickets.selectors(connection, model, selector):
        assign_free_rows(connection, model, wanted, MAX_FREE_ROWS)


def assign_quietly(using: str, model: Model, selectors: Iterable[str] = ("{}",)) -> None:
    """Give free rows to waiters with these selectors; if that fails, they find the rows themselves a moment later."""
    with contextlib.suppress(DatabaseError, InterfaceError, ResourcePoolError), statement_timeout():
        for selector in selectors:
            assign_free_rows(connections[using], model, selector, MAX_FREE_ROWS)


def _give_free(
    connection: BaseDatabaseWrapper, model: Model, pk: Any, fence: int, ticket: WaitingTicket
) -> bool:
    send = partial(handover.give, connection, model, pk, fence, ticket, if_free=True)
    return retrying(connection, send, busy=lambda: False)


def reclaim_from_later(connection: BaseDatabaseWrapper, model: Model, selector: str = "{}") -> None:
    """Free rows of tickets for several that earlier tickets need, which came later with a better priority.

    Otherwise each of them might wait for rows of the other. All that are needed are freed in one turn, those of the
    last in line first. Raises DatabaseUnavailable; some may have been freed.
    """
    line = tickets.in_line(connection, model, selector=selector)
    lacking = {ticket.pk: ticket.lacks for ticket in line}
    for number in range(len(line) - 1, 0, -1):
        before, ticket = line[:number], line[number]
        for row in ticket.holds:
            needy = [earlier for earlier in before if lacking[earlier.pk] > 0]
            fits = (
                handover.matching_selectors(connection, model, row, {one.selector for one in needy})
                if needy
                else ()
            )
            wanting = next((one for one in needy if one.selector in fits), None)
            if wanting is None:
                continue
            left = ticket.without(row)
            send = partial(handover.take_from, connection, model, row, ticket, left.holds)
            if not retrying(connection, send):
                break  # it has changed: it is looked at again in the next turn
            ticket = left
            lacking[wanting.pk] -= 1
