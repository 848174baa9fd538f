"""Resources and events as flat records for spreadsheets, scripts and imports, read in chunks.

Text that a spreadsheet would execute as a formula is escaped, whichever character the spreadsheet splits at.
"""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db import connections, router
from django.db.models import Max, Min

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.db.retry import retrying
from resourcepool.db.rows import in_chunks
from resourcepool.encryption.field import EncryptedTextField
from resourcepool.events import sentence_for
from resourcepool.exceptions import SecretUnreadable
from resourcepool.history.models import Event
from resourcepool.proxies.importer import COLUMNS
from resourcepool.resources.models import AbstractResource
from resourcepool.resources.state import state_details

CHUNK = 1_000
STATE = "state"
SHARED = {field.name for field in AbstractResource._meta.fields}

Record = dict[str, Any]


def resource_records(rows: Any) -> Iterator[Record]:
    """Yield the ``resource_columns`` of each resource, without secrets, ordered by primary key.

    Status, reason and end are the current ones: a quarantine that has ended is left out.

    Not promised: a consistent snapshot. Each thousand rows are read separately.
    """
    stored = [name for name in resource_columns(rows.model, to_import=False) if name != STATE]
    for row in in_chunks(rows.annotate(db_now=DbNow()), CHUNK):
        record = {name: getattr(row, name) for name in stored}
        now = state_details(row, row.db_now)
        current = {"status": now.status, "reason": now.reason, "until": now.until}
        yield {**record, **current, STATE: now.state.value}


def import_records(rows: Any) -> Iterator[Record]:
    """Yield each proxy in the form that ``resourcepool_import`` reads, including the password.

    Raises:
        SecretUnreadable: no key decrypts a password; the message names the row.
    """
    for row in in_chunks(rows, CHUNK):
        try:
            record = {name: getattr(row, name) for name in COLUMNS}
        except SecretUnreadable as error:
            name = f"{row._meta.label} {row.pk}"
            raise SecretUnreadable(sentence_for("about", name=name, why=str(error))) from None
        # A browser sends CRLF; the import expects LF.
        yield {**record, "notes": row.notes.replace("\r\n", "\n").replace("\r", "\n")}


def event_records(model: Any, since: float, until: float = 0.0) -> Iterator[Record]:
    """Yield the events of this pool from ``since`` to ``until`` seconds ago, in the order of their writing."""
    connection = connections[router.db_for_read(Event)]
    events = Event.objects.using(connection.alias).filter(pool=model._meta.label_lower).since(since)
    if until:
        events = events.filter(at__lte=DbLater(-until))
    ends = retrying(connection, lambda: events.aggregate(first=Min("pk"), last=Max("pk")))
    if ends["first"] is None:
        return
    # A range of keys: fast to read in chunks, and without later events.
    events = events.filter(pk__gte=ends["first"], pk__lte=ends["last"])
    names = event_columns()
    for event in in_chunks(events, CHUNK):
        yield {name: getattr(event, name) for name in names}


class _Echo:
    """A file for ``csv.writer`` that returns each line instead of storing it."""

    def write(self, text: str) -> str:
        return text


def csv_lines(
    names: Sequence[str], records: Iterable[Mapping[str, Any]], cell: Callable[[Any], Any]
) -> Iterator[str]:
    """Yield a header of ``names``, and a line for each record; ``cell`` converts each value."""
    write = csv.writer(_Echo()).writerow  # with its default CR LF it quotes cells with either line end
    yield write(names)
    for record in records:
        yield write([cell(record[name]) for name in names])


def resource_columns(model: Any, *, to_import: bool) -> list[str]:
    """Return the names of the columns that ``resource_records`` or ``import_records`` yields."""
    if to_import:
        return list(COLUMNS)
    fields = [field for field in model._meta.concrete_fields if not isinstance(field, EncryptedTextField)]
    # The model's own columns identify a row: they come before the shared ones.
    fields.sort(key=lambda field: not field.primary_key and field.name in SHARED)
    return [*(field.attname for field in fields), STATE]


def event_columns() -> list[str]:
    """Return the names of the columns that ``event_records`` yields."""
    return [field.attname for field in Event._meta.concrete_fields]


# Some spreadsheets accept full-width characters, or cut off text before a formula.
_FORMULA = re.compile(r'[\s"]*[=+\-@＝＋－＠]')  # noqa: RUF001
_NUMBER = re.compile(r"[+-][0-9]+(\.[0-9]+)?")  # such as a phone number; it is not executed
_SPLITS = re.compile(r"([;\t\r\n])")  # also inside quotes that the spreadsheet does not expect


def escape_formulas(value: Any) -> Any:
    """Return text that looks like a formula with a ' before it, and other values unchanged.

    A formula after a semicolon or tab, where spreadsheets may split, gets a ' too.
    """
    if value is None or isinstance(value, int | float):
        return value
    text = str(value)
    if _NUMBER.fullmatch(text):
        return text
    first, *others = _SPLITS.split(text)
    text = "".join([_quoted(first), *(part if _NUMBER.fullmatch(part) else _quoted(part) for part in others)])
    return f"'{text}" if text.startswith(("\t", "\r", "\n")) else text


def _quoted(part: str) -> str:
    return f"'{part}" if _FORMULA.match(part) else part
