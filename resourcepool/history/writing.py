"""Puts facts into the history's table, whatever is in them: one that cannot be written does not stop the others."""

import logging
import os
import socket
from collections.abc import Sequence
from functools import partial

from django.db import InterfaceError, InternalError, OperationalError, ProgrammingError, connections, router
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
from resourcepool.clock import monotonic
from resourcepool.dialect import DbLater
from resourcepool.exceptions import ResourcePoolError
from resourcepool.history.held import grant, held
from resourcepool.history.models import MAX_ACTOR, MAX_ROW, MAX_TEXT, Event, storable
from resourcepool.leases.retry import retrying
from resourcepool.signals import Fact, What

BATCH = 500  # events in one statement
COLUMNS = ("at", "what", "pool", "row", "fence", "holder", "actor", "reason", "seconds", "ttl", "host", "pid")

# The database's fault, and over some day: what waits is written then. Anything else is the fault of one event.
NOT_NOW = (ResourcePoolError, OperationalError, InterfaceError, InternalError, ProgrammingError)

logger = logging.getLogger(__name__)

_host = socket.gethostname()[:80]


def write(facts: Sequence[Fact]) -> None:
    """Add these facts to the history; one that the database cannot take is left out, and the log says so.

    Raises:
        DatabaseUnavailable: and the others of ``NOT_NOW``: nothing, or not all of them, is written.
    """
    try:
        _write(facts)
    except NOT_NOW:
        raise
    except Exception as error:  # noqa: BLE001 (drivers have many kinds for what cannot be stored)
        if len(facts) > 1:
            for fact in facts:
                write([fact])
        else:
            # Not the error's own text: drivers repeat in it what they were given.
            what = (str(facts[0].what), facts[0].model._meta.label, facts[0].pk, type(error).__name__)
            logger.error("the event %r of %s %r cannot be written, and is left out: %s", *what)  # noqa: TRY400


def write_gap(count: int) -> None:
    """Say in the history that so many events of this process are missing; raises DatabaseUnavailable."""
    reason = f"{count} events of this process were not written down: too many waited"
    gap = Event(at=DbLater(0), what=What.LOST, reason=reason, host=_host, pid=os.getpid())
    using = router.db_for_write(Event)
    retrying(connections[using], partial(gap.save, using=using, force_insert=True))


def _write(facts: Sequence[Fact]) -> None:
    using = router.db_for_write(Event)
    retrying(connections[using], partial(_add, facts, using))


def _add(facts: Sequence[Fact], using: str) -> None:
    connection, now = connections[using], monotonic()
    lasted = held(facts, now, using)
    values: list[object] = []
    for fact in facts:
        values += _values(fact, now, lasted.get(grant(fact)))
    dialect.run(connection, _insert(connection, len(facts)), values, dialect.row_count)


def _insert(connection: BaseDatabaseWrapper, count: int) -> str:
    """Return the statement; not ``bulk_create``, which would cost ten times as much of the processes' time."""
    quote = connection.ops.quote_name
    column_of = {one.name: str(one.column) for one in Event._meta.concrete_fields}
    names = ", ".join(quote(column_of[name]) for name in COLUMNS)
    row = f"({dialect.of(connection).later}{', %s' * (len(COLUMNS) - 1)})"
    table, rows = quote(Event._meta.db_table), ", ".join([row] * count)
    return f"INSERT INTO {table} ({names}) VALUES {rows}"  # noqa: S608 (quoted names)


def _values(fact: Fact, now: float, lasted: float | None) -> tuple[object, ...]:
    """Return what ``COLUMNS`` are set to; for ``at`` the microseconds from now."""
    return (
        dialect.micros(fact.at - now),
        fact.what.value,
        fact.model._meta.label_lower,
        storable(fact.pk, MAX_ROW),
        fact.fence,
        storable(fact.holder, MAX_TEXT),
        storable(fact.actor, MAX_ACTOR),
        storable(fact.reason, MAX_TEXT),
        lasted if fact.what is What.REVOKED else fact.seconds,
        fact.ttl,
        _host,
        os.getpid(),
    )
