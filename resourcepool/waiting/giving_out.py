"""Gives out rows that come free by themselves: expiry, the end of a quarantine, a new row, a row back in service.

Any process that looks does this. A released row goes to the first waiter in line at once (``handover``).
"""

import contextlib
from functools import partial
from typing import Any

from django.db import DatabaseError, InterfaceError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.database.retry import answer_timeout, retrying
from resourcepool.exceptions import ResourcePoolError
from resourcepool.leases.table import Model
from resourcepool.waiting import handover, tickets
from resourcepool.waiting.allot import WaitingTicket, allot
from resourcepool.waiting.free_rows import MOST, Glance, glance
from resourcepool.waiting.handover import FEW
from resourcepool.waiting.tickets import Pairs


def give_out(
    connection: BaseDatabaseWrapper, model: Model, selector: str = "{}", most: int = FEW
) -> tuple[Glance, dict[int, Pairs]]:
    """Give free rows to the waiters that are due.

    Args:
        most: how many free rows are looked at.

    Returns:
        The rows that were free for ``selector``; and {ticket: the rows that it has now} of the tickets that got some.

    Raises:
        DatabaseUnavailable: some rows may have been given.
    """
    served: dict[int, WaitingTicket] = {}
    seen = glance(connection, model, model.where(selector, connection), most)
    if seen.free and (line := tickets.in_line(connection, model)):
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

        allot(line, {wanted: list(one.free) for wanted, one in found.items()}, take)
    return seen, {pk: ticket.holds for pk, ticket in served.items()}


def give_everybody(connection: BaseDatabaseWrapper, model: Model) -> None:
    """Give all waiters for rows of ``model`` the rows they are due; raises as ``give_out``."""
    for selector in tickets.selectors(connection, model):
        give_out(connection, model, selector, MOST)


def give_out_quietly(using: str, model: Model) -> None:
    """Give free rows to waiters; if that fails, they find the rows themselves a moment later."""
    with contextlib.suppress(DatabaseError, InterfaceError, ResourcePoolError), answer_timeout():
        give_out(connections[using], model, most=MOST)


def _give_free(
    connection: BaseDatabaseWrapper, model: Model, pk: Any, fence: int, ticket: WaitingTicket
) -> bool:
    send = partial(handover.give, connection, model, pk, fence, ticket, if_free=True)
    return retrying(connection, send, busy=lambda: False)


def take_back(connection: BaseDatabaseWrapper, model: Model) -> None:
    """Free rows of a ticket for several that an earlier ticket needs, which came later with a better priority.

    Otherwise each of them might wait for rows of the other. Raises DatabaseUnavailable.
    """
    line = tickets.in_line(connection, model)
    for number, ticket in enumerate(line):
        before = {earlier.selector for earlier in line[:number]}
        for row in ticket.holds:
            if before and handover.fitting(connection, model, row, before):
                left = tuple(held for held in ticket.holds if held != row)
                retrying(connection, partial(handover.take_from, connection, model, row, ticket, left))
                break  # one at a time: the ticket's fence changes
