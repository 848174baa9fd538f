"""Writes events into the history's table; an event that cannot be stored does not stop the others."""

import logging
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from django.db import InterfaceError, InternalError, OperationalError, ProgrammingError, connections, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model

from resourcepool.clock import monotonic
from resourcepool.conf import pool_setting
from resourcepool.db import dialect
from resourcepool.db.dialect import DbLater, MicrosUntil
from resourcepool.db.retry import retrying
from resourcepool.events import sentence_for
from resourcepool.events.field import stored
from resourcepool.exceptions import ResourcePoolError
from resourcepool.history.models import ENDS, MAX_ACTOR, MAX_ROW, MAX_TEXT, Event, storable
from resourcepool.signals import EventKind, RowEvent
from resourcepool.text import host_name

Grant = tuple[str, str, int]  # pool, row, fence


def grant_key(model: type[Model], pk: Any, fence: int) -> Grant:
    """Return the key of a grant in the history."""
    return model._meta.label_lower, storable(pk, MAX_ROW), fence


def durations(ended: Mapping[Grant, float], begun: dict[Grant, float], using: str) -> dict[Grant, float]:
    """Return {grant: seconds it was held} of grants whose acquisition is in the history, in one query.

    Args:
        ended: {grant: seconds since its end}.
        begun: {grant: seconds since its acquisition}, if that is not written yet.
    """
    if not ended:
        return {}
    pools, rows, fences = (set(column) for column in zip(*ended, strict=True))
    acquired: Any = Event.objects.using(using).filter(
        pool__in=pools, row__in=rows, fence__in=fences, what=EventKind.ACQUIRED
    )
    starts = acquired.values_list("pool", "row", "fence", MicrosUntil("at"))
    ages = {(pool, row, fence): -micros / 1_000_000 for pool, row, fence, micros in starts} | begun
    return {grant: max(0.0, ages[grant] - ago) for grant, ago in ended.items() if grant in ages}


NOT_SHORT = {"history": False}  # what locks declare, in effect


class Entry(NamedTuple):
    """One row of the history: ``event``, and the acquisition of the same grant if it is merged into it."""

    event: RowEvent
    begun: RowEvent | None = None


def merge_events(events: Iterable[RowEvent]) -> list[Entry]:
    """Return the rows to write for ``events``, in order; a lease that begins and ends among them becomes one row.

    Of a model with ``records_short_grants`` False it becomes none, unless its own settings turn its history on.
    """
    entries: list[Entry | None] = []
    begins = EventKind.ACQUIRED  # looked up once: enum members are slow in Python 3.11
    begun: dict[tuple[object, object, int], tuple[int, RowEvent]] = {}  # {grant: index, and acquisition}
    for event in events:
        grant = (event.model, event.pk, event.fence)
        if event.kind is begins:
            begun[grant] = len(entries), event
            entries.append(Entry(event))
        elif (beginning := begun.pop(grant, None)) is not None and event.kind in ENDS:
            entries[beginning[0]] = None
            if _records_short_grants(event.model):
                entries.append(Entry(event, beginning[1]))
        else:
            entries.append(Entry(event))
    return [entry for entry in entries if entry is not None]


def _records_short_grants(model: type[Model]) -> bool:
    return (
        getattr(model, "records_short_grants", True)
        or pool_setting(model._meta.label, "history", NOT_SHORT) is True
    )


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
    connection, now, revoked = connections[using], monotonic(), EventKind.REVOKED
    ended = {_grant(event): now - event.at for event, _ in entries if event.kind is revoked}
    started = (event for event, _ in entries if ended and event.kind is EventKind.ACQUIRED)
    lasted = durations(ended, {_grant(event): now - event.at for event in started}, using)
    db_dialect, pid = dialect.of(connection), os.getpid()
    earlier, unit = db_dialect.later.split("%s")
    rows: list[str] = []
    texts: list[str] = []
    for event, begun in entries:
        at = f"{earlier}{dialect.micros(event.at - now)}{unit}"
        is_whole, ttl = (db_dialect.false, event.ttl) if begun is None else (db_dialect.true, begun.ttl)
        seconds = lasted.get(_grant(event)) if event.kind is revoked else event.seconds
        numbers = f"{event.fence:d}, {is_whole}, {pid}, {_float(ttl)}, {_float(seconds)}"
        rows.append(f"({at}, '{event.kind.value}', {numbers}, {_texts(event, texts)})")
    dialect.run(connection, f"{_insert(connection)} {', '.join(rows)}", texts, dialect.row_count)


def _grant(event: RowEvent) -> Grant:
    return grant_key(event.model, event.pk, event.fence)


def _insert(connection: BaseDatabaseWrapper) -> str:
    """Return the start of the INSERT; ``bulk_create`` takes ten times the processor time."""
    quote = connection.ops.quote_name
    column_of = {field.name: str(field.column) for field in Event._meta.concrete_fields}
    names = ", ".join(quote(column_of[name]) for name in COLUMNS)
    return f"INSERT INTO {quote(Event._meta.db_table)} ({names}) VALUES"


def _float(value: float | None) -> str:
    return repr(float(value)) if value is not None and math.isfinite(value) else "NULL"


def _texts(event: RowEvent, texts: list[str]) -> str:
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
