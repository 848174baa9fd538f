"""Writes events into the history's table; an event that cannot be stored does not stop the others."""

import logging
import math
import os
import re
from collections.abc import Sequence
from functools import partial

from django.db import InterfaceError, InternalError, OperationalError, ProgrammingError, connections, router
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.clock import monotonic
from resourcepool.db import dialect
from resourcepool.db.dialect import DbLater
from resourcepool.db.retry import retrying
from resourcepool.events import sentence_for
from resourcepool.events.field import stored
from resourcepool.exceptions import ResourcePoolError
from resourcepool.history.durations import grant_key, revoked_durations
from resourcepool.history.merge import Entry
from resourcepool.history.models import MAX_ACTOR, MAX_ROW, MAX_TEXT, Event, storable
from resourcepool.labels import host_name
from resourcepool.signals import EventKind, RowEvent

COLUMNS = (
    *("at", "what", "fence", "is_whole", "pid", "ttl", "seconds"),
    *("pool", "row", "holder", "actor", "reason", "host"),
)

# Errors of the database, after which the events are written later. Other errors concern a single event.
RETRY_LATER = (ResourcePoolError, OperationalError, InterfaceError, InternalError, ProgrammingError)

# Text that is safe as a literal, because drivers are slow with many placeholders.
PLAIN = re.compile(r"[\w./: -]*", re.ASCII).fullmatch

logger = logging.getLogger(__name__)

_host = host_name()


def write(entries: Sequence[Entry]) -> None:
    """Add the entries to the history; an event that the database cannot store is logged and skipped.

    Raises:
        DatabaseUnavailable: like the others of ``RETRY_LATER``: none, or not all, were written.
    """
    using = router.db_for_write(Event)
    try:
        retrying(connections[using], partial(_add, entries, using))
    except RETRY_LATER:
        raise
    except Exception as error:  # noqa: BLE001 (drivers raise various errors for text that cannot be stored)
        if len(entries) > 1:
            half = len(entries) // 2
            write(entries[:half])
            write(entries[half:])
        else:
            event = entries[0].event
            # Not the error's text, because drivers repeat the values in it.
            what = (str(event.kind), event.model._meta.label, event.pk, type(error).__name__)
            logger.error("event %r of %s %r cannot be stored and is skipped: %s", *what)  # noqa: TRY400


def write_gap(count: int) -> None:
    """Record that ``count`` events of this process were dropped; raises DatabaseUnavailable."""
    reason = sentence_for("not_written", count=count)
    gap = Event(at=DbLater(0), what=EventKind.LOST, reason=reason, host=_host, pid=os.getpid())
    using = router.db_for_write(Event)
    retrying(connections[using], partial(gap.save, using=using, force_insert=True))


def _add(entries: Sequence[Entry], using: str) -> None:
    connection, now = connections[using], monotonic()
    durations = revoked_durations((entry.event for entry in entries), now, using)
    db_dialect, pid, revoked = dialect.of(connection), os.getpid(), EventKind.REVOKED
    earlier, unit = db_dialect.later.split("%s")
    rows: list[str] = []
    texts: list[str] = []
    for event, begun in entries:
        at = f"{earlier}{dialect.micros(event.at - now)}{unit}"
        is_whole, ttl = (db_dialect.false, event.ttl) if begun is None else (db_dialect.true, begun.ttl)
        seconds = durations.get(grant_key(event)) if event.kind is revoked else event.seconds
        numbers = f"{event.fence:d}, {is_whole}, {pid}, {_float(ttl)}, {_float(seconds)}"
        rows.append(f"({at}, '{event.kind.value}', {numbers}, {_texts(event, texts)})")
    dialect.run(connection, f"{_insert(connection)} {', '.join(rows)}", texts, dialect.row_count)


def _insert(connection: BaseDatabaseWrapper) -> str:
    """Return the start of the INSERT; ``bulk_create`` takes ten times the processor time."""
    quote = connection.ops.quote_name
    column_of = {field.name: str(field.column) for field in Event._meta.concrete_fields}
    names = ", ".join(quote(column_of[name]) for name in COLUMNS)
    return f"INSERT INTO {quote(Event._meta.db_table)} ({names}) VALUES"


def _float(value: float | None) -> str:
    return repr(float(value)) if value is not None and math.isfinite(value) else "NULL"


def _texts(event: RowEvent, texts: list[str]) -> str:
    """Return the SQL of the text columns, and append its parameters to ``texts``."""
    values = (
        event.model._meta.label_lower,
        storable(event.pk, MAX_ROW),
        storable(event.holder, MAX_TEXT),
        storable(event.actor, MAX_ACTOR),
        stored(event.reason),
        _host,
    )
    if PLAIN("".join(values)):
        return "'" + "', '".join(values) + "'"
    texts += filter(None, values)
    return ", ".join(["%s" if text else "''" for text in values])
