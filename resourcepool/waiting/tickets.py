"""The statements on tickets: plain SQL, built once, because every wait sends some of them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import hints
from resourcepool.clock import monotonic
from resourcepool.conf import ticket_ttl
from resourcepool.db import dialect
from resourcepool.db.dialect import DbLater, cached_per_database, micros
from resourcepool.db.retry import Unsettled, fetch_rows, retrying
from resourcepool.leases.models import Model
from resourcepool.leases.terms import Request
from resourcepool.waiting.models import Ticket, line_name

MAX_TICKETS = 10_000  # read at once; tickets further back are not served yet anyway

# ``json.dumps`` makes an encoder for each call, and ``json.loads`` calls this in three steps.
_to_json, _from_json = json.JSONEncoder(ensure_ascii=False).encode, json.JSONDecoder().raw_decode

Row = tuple[Any, int]  # its primary key and fence
HeldRows = tuple[Row, ...]


class NewTicket(NamedTuple):
    """A ticket that was just taken.

    Attributes:
        sent_at: this process's clock just before the INSERT.
        grant_seconds: how long a row that is granted to the ticket stays granted until it is renewed.
        ttl: how long the ticket stays in line until it is renewed.
    """

    pk: int
    sent_at: float
    grant_seconds: float
    ttl: float


class TicketState(NamedTuple):
    """The current state of a ticket.

    Attributes:
        left: seconds until the ticket expires or, for one row, until its grant does.
    """

    fence: int
    granted: HeldRows
    is_waiting: bool
    left: float


@dataclass(slots=True)  # not frozen: that takes far longer to make, and a release makes several
class WaitingTicket:
    """A live ticket that is still waiting.

    Attributes:
        fence: of the ticket; increases with every row that the ticket gets or loses.
        holds: (primary key, fence) of the rows that it has so far, if it waits for several.
        grant_us: microseconds for which a row stays granted to it, until it is renewed.
    """

    pk: int
    fence: int = 1
    selector: str = "{}"
    count: int = 1
    holds: tuple[tuple[Any, int], ...] = ()
    holder: str = ""
    grant_us: int = 0
    address: int = 0
    priority: int = 0

    @property
    def lacks(self) -> int:
        """The number of rows that it still needs."""
        return self.count - len(self.holds)

    def given(self, pk: Any, fence: int) -> "WaitingTicket":
        """Return the ticket with this row added."""
        return replace(self, fence=self.fence + 1, holds=(*self.holds, (pk, fence)))

    def without(self, row: tuple[Any, int]) -> "WaitingTicket":
        """Return the ticket with this row removed."""
        return replace(self, fence=self.fence + 1, holds=tuple(held for held in self.holds if held != row))


class _Texts:
    """The SQL for one database."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        db_dialect, quote = dialect.of(connection), connection.ops.quote_name
        fields = {field.name: quote(str(field.column)) for field in Ticket._meta.concrete_fields}
        self.name = table = quote(Ticket._meta.db_table)
        self.column = column = SimpleNamespace(**fields)
        self.full = SimpleNamespace(**{name: f"{table}.{column}" for name, column in fields.items()})

        def columns(names: str) -> str:
            return ", ".join(fields[name] for name in names.split())

        alive = f"{column.busy_before} > {db_dialect.indexed_now}"
        self.waits = f"{column.pool} = %s AND {column.is_waiting} = {db_dialect.true} AND {alive}"
        self.order = f"ORDER BY {column.priority}, {column.id}"
        about = "asked_at pool selector count priority address grant_us granted collected is_waiting holder"
        self.take = (
            f"INSERT INTO {table} ({columns('fence busy_before ' + about)}) "  # noqa: S608 (quoted names)
            f"VALUES (1, {db_dialect.later}, {db_dialect.now}, "
            f"%s, %s, %s, %s, %s, %s, '[]', '[]', {db_dialect.true}, %s)"
            f"{db_dialect.returning_key.format(pk=column.id)}"
        )
        place = columns("id fence selector count collected holder grant_us address priority")
        self.in_line = f"SELECT {place} FROM {table} WHERE {self.waits} {self.order} LIMIT %s"  # noqa: S608
        self.selectors = (
            f"SELECT DISTINCT {column.selector} FROM {table} WHERE {self.waits} LIMIT {MAX_TICKETS}"  # noqa: S608
        )
        alike = f"{self.waits} AND {column.selector} = {db_dialect.binary_param}"
        self.first = f"SELECT {column.id} FROM {table} WHERE {alike} {self.order} LIMIT %s"  # noqa: S608
        seen = columns("id fence granted collected is_waiting")
        left = db_dialect.micros_until.format(moment=column.busy_before)
        self.look = f"SELECT {seen}, {left} FROM {table} WHERE {column.id} IN "  # noqa: S608
        self.look_at_one = f"{self.look}(%s)"
        self.renew = (
            f"UPDATE {table} SET {column.busy_before} = {db_dialect.later} "  # noqa: S608
            f"WHERE {column.is_waiting} = {db_dialect.true} AND {alive} AND {column.id} IN "
        )
        self.remove = f"DELETE FROM {table} WHERE {column.id} IN "  # noqa: S608
        self.leave = f"DELETE FROM {table} WHERE {column.fence} = %s AND {column.id} IN "  # noqa: S608


of = cached_per_database(_Texts)  # the SQL for the database of a connection


def take(connection: BaseDatabaseWrapper, model: Model, request: Request, holder: str) -> NewTicket:
    """Insert a ticket, the last one with this priority; raises DatabaseUnavailable."""
    ttl = ticket_ttl()
    # A ticket for several rows renews them together with itself.
    grant_seconds = min(ttl, request.terms.ttl) if request.count == 1 else ttl
    asked = (
        line_name(model, request.selector),
        request.selector,
        request.count,
        request.priority,
        hints.address(),
    )
    params = (micros(ttl), *asked, micros(grant_seconds), holder)
    sent_at, read = monotonic(), dialect.of(connection).key_after_insert

    def settle() -> int:
        """Find the ticket after a lost reply: rows given to a duplicate ticket would be lost."""
        if not request.terms.holder_is_unique:
            raise Unsettled
        mine = Ticket.objects.using(connection.alias).in_line_for(model, request.selector).held_by(holder)
        if (pk := mine.order_by("-pk").values_list("pk", flat=True).first()) is None:
            raise Unsettled
        return int(pk)

    send = partial(dialect.run, connection, of(connection).take, params, read)
    return NewTicket(retrying(connection, send, settle=settle), sent_at, grant_seconds, ttl)


def find(connection: BaseDatabaseWrapper, model: Model, request: Request, holder: str) -> NewTicket | None:
    """Return the ticket of this request; None if there is none, or if the holder's name is not unique."""
    if not request.terms.holder_is_unique:
        return None  # the ticket, if any, expires
    line = Ticket.objects.using(connection.alias).in_line_for(model, request.selector)
    mine = line.filter(holder=holder)
    pk = retrying(connection, mine.values_list("pk", flat=True).first)
    return None if pk is None else NewTicket(pk, 0.0, 0.0, 0.0)


def look(connection: BaseDatabaseWrapper, pks: Sequence[int]) -> dict[int, TicketState]:
    """Return {key: current state} of the tickets that exist."""
    texts = of(connection)
    sql = texts.look_at_one if len(pks) == 1 else f"{texts.look}({_marks(pks)})"
    rows = fetch_rows(connection, sql, pks)
    return {
        pk: TicketState(
            fence, _pairs(granted if collected == "[]" else collected), bool(waits), left_us / 1_000_000
        )
        for pk, fence, granted, collected, waits, left_us in rows
    }


def in_line(
    connection: BaseDatabaseWrapper, model: Model, most: int = MAX_TICKETS, selector: str = "{}"
) -> list[WaitingTicket]:
    """Return up to ``most`` waiters in the line of ``selector``, in the order of service."""
    rows = fetch_rows(connection, of(connection).in_line, [line_name(model, selector), most])
    return [
        # Compared here, because a release reads several tickets, and nearly all wait for one row.
        WaitingTicket(pk, fence, selector, count, () if collected == "[]" else _pairs(collected), *rest)
        for pk, fence, selector, count, collected, *rest in rows
    ]


def first(connection: BaseDatabaseWrapper, model: Model, selector: str, most: int) -> list[int]:
    """Return the keys of the first ``most`` tickets with this selector."""
    return [
        pk
        for (pk,) in fetch_rows(connection, of(connection).first, [line_name(model, selector), selector, most])
    ]


def selectors(connection: BaseDatabaseWrapper, model: Model, selector: str = "{}") -> list[str]:
    """Return the distinct selectors of all waiters in the line of ``selector``."""
    line = [line_name(model, selector)]
    return [other for (other,) in fetch_rows(connection, of(connection).selectors, line)]


def renew(connection: BaseDatabaseWrapper, pks: Sequence[int]) -> int:
    """Renew these tickets for another ``TICKET_TTL``, unless they have expired or been served; return how many."""
    return _change(connection, of(connection).renew, [micros(ticket_ttl())], pks)


def leave(connection: BaseDatabaseWrapper, pks: Sequence[int], fence: int = 1) -> bool:
    """Remove these tickets, unless they have been given rows; returns whether all were removed.

    Args:
        fence: the expected fence; it is higher if a ticket was given rows.
    """
    return _change(connection, of(connection).leave, [fence], pks) == len(pks)


def remove(connection: BaseDatabaseWrapper, pks: Sequence[int]) -> None:
    """Remove these tickets, even if they have rows."""
    _change(connection, of(connection).remove, [], pks)


def expired_for(connection: BaseDatabaseWrapper, model: Model, seconds: float) -> list[int]:
    """Return the tickets for rows of ``model`` that expired more than ``seconds`` ago."""
    expired = (
        Ticket.objects.using(connection.alias).for_rows_of(model).filter(busy_before__lt=DbLater(-seconds))
    )
    return retrying(connection, lambda: list(expired.values_list("pk", flat=True)[:MAX_TICKETS]))


def written(pairs: Sequence[Row]) -> str:
    """Return rows as JSON, as stored in ``granted`` and ``collected``."""
    plain = [f"[{pk}, {fence}]" if isinstance(pk, int) else _to_json([str(pk), fence]) for pk, fence in pairs]
    return f"[{', '.join(plain)}]"


def _pairs(rows: str) -> HeldRows:
    return () if rows == "[]" else tuple(map(tuple, _from_json(rows)[0]))


def _marks(pks: Sequence[int]) -> str:
    return ", ".join(["%s"] * len(pks)) or "NULL"  # none: the waiters have just left


def _change(connection: BaseDatabaseWrapper, sql: str, params: Sequence[Any], pks: Sequence[int]) -> int:
    send = partial(dialect.run, connection, f"{sql}({_marks(pks)})", [*params, *pks], dialect.row_count)
    return retrying(connection, send)
