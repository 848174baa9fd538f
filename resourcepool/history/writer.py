"""Writes facts into the history's table; a fact that cannot be stored does not stop the others."""

import logging
import math
import os
import re
from collections.abc import Sequence
from functools import partial

from django.db import InterfaceError, InternalError, OperationalError, ProgrammingError, connections, router
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect
from resourcepool.clock import monotonic
from resourcepool.database.retry import retrying
from resourcepool.dialect import DbLater
from resourcepool.events import sentence_for
from resourcepool.events.field import stored
from resourcepool.exceptions import ResourcePoolError
from resourcepool.history.durations import grant, held
from resourcepool.history.merge import Entry
from resourcepool.history.models import MAX_ACTOR, MAX_ROW, MAX_TEXT, Event, storable
from resourcepool.labels import host_name
from resourcepool.signals import EventKind, RowEvent

COLUMNS = (
    *("at", "what", "fence", "is_whole", "pid", "ttl", "seconds"),
    *("pool", "row", "holder", "actor", "reason", "host"),
)

# Errors of the database, after which the events are written later. Any other error is of a single event.
NOT_NOW = (ResourcePoolError, OperationalError, InterfaceError, InternalError, ProgrammingError)

# Text that needs no placeholder: drivers are slow with many placeholders.
PLAIN = re.compile(r"[\w./: -]*", re.ASCII).fullmatch

logger = logging.getLogger(__name__)

_host = host_name()


def write(entries: Sequence[Entry]) -> None:
    """Add these to the history; an event that the database cannot store is left out, and logged.

    Raises:
        DatabaseUnavailable: and the others of ``NOT_NOW``: nothing, or not all of them, is written.
    """
    using = router.db_for_write(Event)
    try:
        retrying(connections[using], partial(_add, entries, using))
    except NOT_NOW:
        raise
    except Exception as error:  # noqa: BLE001 (drivers have many errors for text that cannot be stored)
        if len(entries) > 1:
            for entry in entries:
                write([entry])
        else:
            event = entries[0].event
            # Not the error's text, in which drivers repeat the values.
            what = (str(event.kind), event.model._meta.label, event.pk, type(error).__name__)
            logger.error("the event %r of %s %r cannot be written, and is left out: %s", *what)  # noqa: TRY400


def write_gap(count: int) -> None:
    """Record that ``count`` events of this process are missing; raises DatabaseUnavailable."""
    reason = sentence_for("not_written", count=count)
    gap = Event(at=DbLater(0), what=EventKind.LOST, reason=reason, host=_host, pid=os.getpid())
    using = router.db_for_write(Event)
    retrying(connections[using], partial(gap.save, using=using, force_insert=True))


def _add(entries: Sequence[Entry], using: str) -> None:
    connection, now = connections[using], monotonic()
    lasted = held((entry.event for entry in entries), now, using)
    db_dialect, pid, freed = dialect.of(connection), os.getpid(), EventKind.REVOKED
    earlier, unit = db_dialect.later.split("%s")
    rows: list[str] = []
    texts: list[str] = []
    for event, begun in entries:
        at = f"{earlier}{dialect.micros(event.at - now)}{unit}"
        is_whole, ttl = (db_dialect.false, event.ttl) if begun is None else (db_dialect.true, begun.ttl)
        seconds = lasted.get(grant(event)) if event.kind is freed else event.seconds
        numbers = f"{event.fence:d}, {is_whole}, {pid}, {_float(ttl)}, {_float(seconds)}"
        rows.append(f"({at}, '{event.kind.value}', {numbers}, {_texts(event, texts)})")
    dialect.run(connection, f"{_insert(connection)} {', '.join(rows)}", texts, dialect.row_count)


def _insert(connection: BaseDatabaseWrapper) -> str:
    """Return the beginning of the statement; ``bulk_create`` takes ten times as much processor time."""
    quote = connection.ops.quote_name
    column_of = {one.name: str(one.column) for one in Event._meta.concrete_fields}
    names = ", ".join(quote(column_of[name]) for name in COLUMNS)
    return f"INSERT INTO {quote(Event._meta.db_table)} ({names}) VALUES"


def _float(value: float | None) -> str:
    return repr(float(value)) if value is not None and math.isfinite(value) else "NULL"


def _texts(event: RowEvent, texts: list[str]) -> str:
    """Return the SQL of the text columns, and add its parameters to ``texts``."""
    found = (
        event.model._meta.label_lower,
        storable(event.pk, MAX_ROW),
        storable(event.holder, MAX_TEXT),
        storable(event.actor, MAX_ACTOR),
        stored(event.reason),
        _host,
    )
    if PLAIN("".join(found)):
        return "'" + "', '".join(found) + "'"
    texts += filter(None, found)
    return ", ".join(["%s" if text else "''" for text in found])
