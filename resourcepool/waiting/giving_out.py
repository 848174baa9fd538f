"""Gives out rows that come free by themselves: expiry, the end of a quarantine, a new row, a row back in service.

Any process that looks does this. A released row goes to the first waiter in line at once (``handover``).
"""

import contextlib
from collections.abc import Iterable
from functools import partial
from typing import Any

from django.db import DatabaseError, InterfaceError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.database.answers import answer_timeout
from resourcepool.database.retry import retrying
from resourcepool.exceptions import ResourcePoolError
from resourcepool.leases.table import Model
from resourcepool.waiting import handover, tickets
from resourcepool.waiting.allot import TRIES, WaitingTicket, allot
from resourcepool.waiting.free_rows import MOST, Glance, glance
from resourcepool.waiting.handover import FEW
from resourcepool.waiting.tickets import Pairs


def give_out(
    connection: BaseDatabaseWrapper,
    model: Model,
    selector: str = "{}",
    most: int = FEW,
    tries: int = TRIES,
) -> tuple[Glance, dict[int, Pairs]]:
    """Give free rows to the waiters that are due.

    Args:
        most: how many free rows are looked at.
        tries: see ``allot``; for a line of one it is always ``TRIES``.

    Returns:
        The rows that were free for ``selector``; and {ticket: the rows that it has now} of the tickets that got some.

    Raises:
        DatabaseUnavailable: some rows may have been given.
    """
    served: dict[int, WaitingTicket] = {}
    seen = glance(connection, model, model.where(selector, connection), most)
    if seen.free and (line := tickets.in_line(connection, model, selector=selector)):
        found = {selector: seen}
        for other in {ticket.selector for ticket in line} - {selector}:
            found[other] = glance(connection, model, model.where(other, connection), len(line))
        fences = {pk: fence for one in found.values() for pk, fence in one.free.items()}

        def take(ticket: WaitingTicket, pk: Any) -> bool:
            ticket = served.get(ticket.pk, ticket)
            given = _give_free(connection, model, pk, fences[pk], ticket)
            if given:
                served[ticket.pk] = ticket.given(pk, fences[pk] + 1)
            return given

        if len(line) == 1:
            tries = TRIES  # nobody behind it would take what is free beyond a locked row
        allot(line, {wanted: list(one.free) for wanted, one in found.items()}, take, tries)
    return seen, {pk: ticket.holds for pk, ticket in served.items()}


def give_everybody(connection: BaseDatabaseWrapper, model: Model, selector: str = "{}") -> None:
    """Give all who stand in line with ``selector`` the rows they are due; raises as ``give_out``."""
    for wanted in tickets.selectors(connection, model, selector):
        give_out(connection, model, wanted, MOST)


def give_out_quietly(using: str, model: Model, selectors: Iterable[str] = ("{}",)) -> None:
    """Give free rows to waiters with these selectors; if that fails, they find the rows themselves a moment later."""
    with contextlib.suppress(DatabaseError, InterfaceError, ResourcePoolError), answer_timeout():
        for selector in selectors:
            give_out(connections[using], model, selector, MOST)


def _give_free(
    connection: BaseDatabaseWrapper, model: Model, pk: Any, fence: int, ticket: WaitingTicket
) -> bool:
    send = partial(handover.give, connection, model, pk, fence, ticket, if_free=True)
    return retrying(connection, send, busy=lambda: False)


def take_back(connection: BaseDatabaseWrapper, model: Model, selector: str = "{}") -> None:
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
            fits = handover.fitting(connection, model, row, {one.selector for one in needy}) if needy else ()
            wanting = next((one for one in needy if one.selector in fits), None)
            if wanting is None:
                continue
            left = ticket.without(row)
            send = partial(handover.take_from, connection, model, row, ticket, left.holds)
            if not retrying(connection, send):
                break  # it has changed: it is looked at again in the next turn
            ticket = left
            lacking[wanting.pk] -= 1
