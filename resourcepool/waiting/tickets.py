"""The statements about tickets: plain SQL, put together once, because every wait sends some of them."""

import json
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect, hints
from resourcepool.conf import ticket_ttl
from resourcepool.dialect import micros
from resourcepool.leases.clock import monotonic
from resourcepool.leases.retry import retrying
from resourcepool.leases.table import Model, table_of
from resourcepool.waiting.allot import Place
from resourcepool.waiting.models import Ticket, pool_name
from resourcepool.waiting.request import Request

NUMBERS = 2**40  # of tickets, in what a hand-over tells: at a thousand a second they last for 34 years
MOST = 10_000  # tickets that are looked at; whoever stands further back is not served yet anyway

Pairs = tuple[tuple[Any, int], ...]  # (primary key, fence) of rows


class Taken(NamedTuple):
    """A ticket that has just been taken; ``sent_at``: this process's clock just before; ``lasts``: in seconds."""

    pk: int
    sent_at: float
    lasts: float


class Seen(NamedTuple):
    """What a ticket looks like now; ``left``: for how many seconds it lives, or the one row it was given is its own."""

    fence: int
    granted: Pairs
    is_waiting: bool
    left: float

    @property
    def is_alive(self) -> bool:
        """Whether it stands in line, if it waits."""
        return self.left > 0


class _Texts:
    """The SQL for one database."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        speaks, table, quote = dialect.of(connection), table_of(connection, Ticket), connection.ops.quote_name
        about = "asked_at pool selector count priority address lasts granted collected is_waiting"
        names = dict(zip(about.split(), map(quote, about.split()), strict=True))
        columns = ", ".join([table.fence, table.busy_before, *names.values(), table.holder])
        self.name, self.table, self.names = table.name, table, names
        alive = f"{table.busy_before} > {speaks.indexed_now}"
        self.waits = f"{names['pool']} = %s AND {names['is_waiting']} = {speaks.true} AND {alive}"
        self.order = f"ORDER BY {names['priority']}, {table.pk}"
        self.columns = {field.name: quote(str(field.column)) for field in Ticket._meta.concrete_fields}
        self.take = (
            f"INSERT INTO {table.name} ({columns}) "  # noqa: S608 (quoted names)
            f"VALUES (1, {speaks.later}, {speaks.now}, %s, %s, %s, %s, %s, %s, '[]', '[]', {speaks.true}, %s)"
            f"{speaks.returning_key.format(pk=table.pk)}"
        )
        place = ["fence", "selector", "count", "granted", "collected", "holder", "lasts", "address"]
        read = ", ".join([table.pk, *map(quote, place)])
        self.in_line = f"SELECT {read} FROM {table.name} WHERE {self.waits} {self.order} LIMIT %s"  # noqa: S608
        self.selectors = (
            f"SELECT DISTINCT {names['selector']} FROM {table.name} WHERE {self.waits} LIMIT {MOST}"  # noqa: S608
        )
        alike = f"{self.waits} AND {names['selector']} = {speaks.exactly}"
        self.first = f"SELECT {table.pk} FROM {table.name} WHERE {alike} {self.order} LIMIT %s"  # noqa: S608
        seen = f"{table.pk}, {table.fence}, {names['granted']}, {names['collected']}, {names['is_waiting']}"
        left = speaks.micros_until.format(moment=table.busy_before)
        self.look = (
            f"SELECT {seen}, {left} "  # noqa: S608
            f"FROM {table.name} WHERE {table.pk} IN "
        )
        self.renew = (
            f"UPDATE {table.name} SET {table.busy_before} = {speaks.later} "  # noqa: S608
            f"WHERE {names['is_waiting']} = {speaks.true} AND {alive} AND {table.pk} IN "
        )
        self.remove = f"DELETE FROM {table.name} WHERE {table.pk} IN "  # noqa: S608
        self.leave = f"DELETE FROM {table.name} WHERE {table.fence} = 1 AND {table.pk} IN "  # noqa: S608
        self.dead = (
            f"SELECT {table.pk} FROM {table.name} "  # noqa: S608
            f"WHERE {names['pool']} = %s AND {table.busy_before} < {speaks.later} LIMIT {MOST}"
        )

    def of_ticket(self, name: str) -> str:
        """Return a column together with the name of its table."""
        return f"{self.name}.{self.columns[name]}"


@lru_cache
def texts(vendor: str, alias: str) -> _Texts:
    """Return the SQL for one database."""
    return _Texts(connections[alias])


def of(connection: BaseDatabaseWrapper) -> _Texts:
    """Return the SQL for the database of ``connection``."""
    return texts(connection.vendor, connection.alias)


def take(connection: BaseDatabaseWrapper, model: Model, request: Request, holder: str) -> Taken:
    """Take a ticket: the last one of those with this priority. Raises DatabaseUnavailable."""
    ttl = ticket_ttl()
    # One for several rows renews what it has been given so far together with itself.
    lasts = min(ttl, request.terms.ttl) if request.count == 1 else ttl
    asked = (pool_name(model), request.selector, request.count, request.priority, hints.address())
    params = (micros(ttl), *asked, micros(lasts), holder)
    sent_at, read = monotonic(), dialect.of(connection).key_after_insert
    pk = retrying(connection, partial(dialect.run, connection, of(connection).take, params, read))
    return Taken(pk, sent_at, lasts)


def find(connection: BaseDatabaseWrapper, model: Model, request: Request, holder: str) -> int | None:
    """Return the ticket that was taken for this request; None if there is none, or its holder's name is not unique."""
    if not request.terms.holder_is_unique:
        return None  # it lapses
    mine = Ticket.objects.using(connection.alias).for_rows_of(model).filter(holder=holder)
    return retrying(connection, mine.values_list("pk", flat=True).first)


def look(connection: BaseDatabaseWrapper, pks: Sequence[int]) -> dict[int, Seen]:
    """Return how these tickets stand: {key: what it looks like}, without those that are not there."""
    rows = _rows(connection, f"{of(connection).look}({_marks(pks)})", pks)
    return {
        pk: Seen(fence, _pairs(granted, collected), bool(waits), micros / 1_000_000)
        for pk, fence, granted, collected, waits, micros in rows
    }


def in_line(connection: BaseDatabaseWrapper, model: Model, most: int = MOST) -> list[Place]:
    """Return up to ``most`` of those who wait for rows of ``model``, first to be served first."""
    rows = _rows(connection, of(connection).in_line, [pool_name(model), most])
    return [
        Place(pk, fence, selector, count, _pairs(granted, collected), *rest)
        for pk, fence, selector, count, granted, collected, *rest in rows
    ]


def first(connection: BaseDatabaseWrapper, model: Model, selector: str, most: int) -> list[int]:
    """Return the keys of the first ``most`` tickets in line that want the same."""
    return [pk for (pk,) in _rows(connection, of(connection).first, [pool_name(model), selector, most])]


def selectors(connection: BaseDatabaseWrapper, model: Model) -> list[str]:
    """Return what those who wait for rows of ``model`` want, each selector once."""
    return [selector for (selector,) in _rows(connection, of(connection).selectors, [pool_name(model)])]


def renew(connection: BaseDatabaseWrapper, pks: Sequence[int]) -> None:
    """Keep these tickets in line for another ``TICKET_TTL``, as far as they are alive and have not been served."""
    _change(connection, of(connection).renew, [micros(ticket_ttl())], pks)


def leave(connection: BaseDatabaseWrapper, pks: Sequence[int]) -> bool:
    """Take these tickets out of the line, unless they have been given something; tells whether all are gone."""
    return _change(connection, of(connection).leave, [], pks) == len(pks)


def remove(connection: BaseDatabaseWrapper, pks: Sequence[int]) -> None:
    """Remove these tickets, whatever they have been given."""
    _change(connection, of(connection).remove, [], pks)


def dead_since(connection: BaseDatabaseWrapper, model: Model, seconds: float) -> list[int]:
    """Return the tickets for rows of ``model`` whose holders died more than ``seconds`` ago."""
    return [pk for (pk,) in _rows(connection, of(connection).dead, [pool_name(model), micros(-seconds)])]


def written(pairs: Sequence[tuple[Any, int]]) -> str:
    """Return rows as a ticket's ``granted`` and ``collected`` have them."""
    return json.dumps(
        [[pk if isinstance(pk, int) else str(pk), fence] for pk, fence in pairs], ensure_ascii=False
    )


def _pairs(granted: str, collected: str) -> Pairs:
    given = granted if collected == "[]" else collected
    return tuple((pk, fence) for pk, fence in json.loads(given)) if given != "[]" else ()


def _marks(pks: Sequence[int]) -> str:
    return ", ".join(["%s"] * len(pks))


def _change(connection: BaseDatabaseWrapper, sql: str, params: Sequence[Any], pks: Sequence[int]) -> int:
    send = partial(dialect.run, connection, f"{sql}({_marks(pks)})", [*params, *pks], dialect.row_count)
    return retrying(connection, send)


def _rows(connection: BaseDatabaseWrapper, sql: str, params: Sequence[Any]) -> list[Any]:
    return retrying(connection, partial(dialect.run, connection, sql, params, dialect.all_rows))
