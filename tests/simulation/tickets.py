"""The history of every ticket and its allowed changes, independent of the code under test."""

import json
import sqlite3
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.simulation.database import moment
from tests.simulation.environment import TICKET_TTL

READ = """
    SELECT id, busy_before, fence, count, grant_us,
        CASE count WHEN 1 THEN granted ELSE collected END, is_waiting, holder
    FROM resourcepool_ticket ORDER BY id
"""
TTL = round(TICKET_TTL * 1_000)
DEAD = 60_000  # milliseconds after which anybody may remove it

Pair = tuple[int, int]


class Ticket(NamedTuple):
    """A ticket as committed; ``busy`` (a time) and ``lasts`` (a duration) are in milliseconds."""

    pk: int
    busy: int
    fence: int
    count: int
    lasts: int
    granted: tuple[Pair, ...]
    is_waiting: bool
    holder: str


@dataclass(frozen=True, slots=True)
class Owner:
    """The process of a ticket, and the ttl of its leases in milliseconds."""

    process: Any
    ttl: int


class Moved(NamedTuple):
    """The grants given to and taken from tickets, with the tickets as they were before."""

    gained: dict[Pair, Ticket]
    lost: dict[Pair, Ticket]


class Tickets:
    """The last known tickets, and the judgement of every change."""

    def __init__(self, observer: sqlite3.Connection) -> None:
        self._observer = observer
        self.now = self._read()
        self.owners: dict[int, Owner] = {}

    def look(self, operation: Any, at: int) -> tuple[str, Moved]:
        """Read the tickets after a statement at time ``at``; return the violation, or "", and the moved grants."""
        before, self.now = self.now, self._read()
        moved, wrong = Moved({}, {}), ""
        for pk, ticket in self.now.items():
            old = before.get(pk)
            if old is None:
                wrong = wrong or self._join(ticket, operation)
            elif ticket != old:
                wrong = wrong or _judge(old, ticket, at)
                moved.gained.update({pair: old for pair in ticket.granted if pair not in old.granted})
                moved.lost.update({pair: old for pair in old.granted if pair not in ticket.granted})
        for pk in before.keys() - self.now.keys():
            if self.owners[pk].process is not operation.process and before[pk].busy + DEAD > at:
                wrong = wrong or f"(3) {before[pk]} was removed by {operation.process.name}"
        return wrong, moved

    def _join(self, ticket: Ticket, operation: Any) -> str:
        self.owners[ticket.pk] = Owner(operation.process, operation.ttl_under(ticket.holder))
        is_fresh = (ticket.fence, ticket.granted, ticket.is_waiting) == (1, (), True)
        return "" if is_fresh else f"(8) a new ticket is {ticket}"

    def _read(self) -> dict[int, Ticket]:
        rows = [Ticket(*row) for row in self._observer.execute(READ)]
        return {
            row.pk: row._replace(
                busy=moment(str(row.busy)), lasts=row.lasts // 1_000, granted=_pairs(str(row.granted))
            )
            for row in rows
        }


def _judge(old: Ticket, new: Ticket, at: int) -> str:
    if old.granted == new.granted:
        is_fine = new == old._replace(busy=max(old.busy, at + TTL)) and old.busy > at
        return "" if is_fine else f"(8) no rule allows this at {at} ms: {old} -> {new}"
    is_one = len(set(old.granted) ^ set(new.granted)) == 1
    expected = old._replace(
        fence=old.fence + 1,
        granted=new.granted,
        is_waiting=len(new.granted) < old.count,
        busy=at + old.lasts if old.count == 1 else old.busy,
    )
    if is_one and new == expected and old.is_waiting and old.busy > at:
        return ""
    return f"(8) no rule allows this at {at} ms: {old} -> {new}"


def _pairs(granted: str) -> tuple[Pair, ...]:
    return tuple((pk, fence) for pk, fence in json.loads(granted))
