"""Imports rows of any resource model from CSV: a plan of each row's change, then all or nothing."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.core.exceptions import ValidationError
from django.db import IntegrityError, connections
from django.db.models import AutoField, JSONField, Q, UniqueConstraint

from resourcepool.db.retry import retrying
from resourcepool.db.rows import batched
from resourcepool.db.transactions import fail_if_locked
from resourcepool.encryption.field import EncryptedTextField
from resourcepool.events import Sentence
from resourcepool.exceptions import ImportRefused
from resourcepool.leases.models import LEASE_COLUMNS
from resourcepool.resources.state import STATE_COLUMNS
from resourcepool.translation import gettext as _, gettext_lazy, gettext_noop

NEW, CHANGED, UNCHANGED, WRONG = "new", "changed", "unchanged", "wrong"
LABELS = {
    NEW: gettext_lazy("new"),
    CHANGED: gettext_lazy("changed"),
    UNCHANGED: gettext_lazy("unchanged"),
    WRONG: gettext_lazy("wrong"),
}
MAX_ROWS = 20_000
BATCH = 100  # rows looked for in one statement
SET = "***"  # instead of a secret


class Change(NamedTuple):
    """A column of a row; secrets are shown as ``SET``."""

    field: str
    old: str
    new: str


class RowChange(NamedTuple):
    """What the import does with one row of the file; ``what``: a key of ``LABELS``."""

    line: int
    what: str
    name: str
    changes: tuple[Change, ...] = ()
    note: str = ""

    @property
    def label(self) -> str:
        """``what``, for people."""
        return str(LABELS[self.what])


@dataclass
class RowPlan:
    """The plan for each row of a file.

    Attributes:
        writes: (instance, the columns to update; None: insert it).
    """

    rows: list[RowChange] = field(default_factory=list)
    writes: list[tuple[Any, list[str] | None]] = field(default_factory=list)

    @property
    def counts(self) -> Counter[str]:
        """The number of rows for each kind of change."""
        return Counter(row.what for row in self.rows)


def import_columns(model: Any) -> dict[str, Any]:
    """Return {name in the header: column} of what an import may write, and of the primary key."""
    state = LEASE_COLUMNS | STATE_COLUMNS
    columns = [column for column in model._meta.concrete_fields if column.primary_key or column.editable]
    return {column.attname: column for column in columns if column.attname not in state}


def make_row_plan(model: Any, text: str, *, update: bool) -> RowPlan:
    """Return what an import of this CSV text does with each row.

    A row is an existing one if the columns of its primary key or of a unique constraint are in the file, and equal.

    Args:
        update: change existing rows; otherwise those that differ stay as they are.

    Raises:
        ImportRefused: the header has unknown columns, or the file is no CSV.
        DatabaseUnavailable: the database cannot be read.
    """
    names, records = _read(model, text)
    key, plan, seen = _key(model, names), RowPlan(), dict[tuple[Any, ...], int]()
    auto = (
        model._meta.pk.attname if isinstance(model._meta.pk, AutoField) else ""
    )  # the database gives new keys
    for part in batched(records, BATCH):
        parsed = [(line, _parse(model, cells)) for line, cells in part]
        existing = _existing(model, key, [values for _line, (values, _error) in parsed])
        for line, (values, wrong) in parsed:
            identity = tuple(values.get(name) for name in key) if key and not wrong else ()
            first = line if None in identity or not identity else seen.setdefault(identity, line)
            row = existing.get(identity)
            error = wrong or (_("the same row as in line %d") % first if first != line else "")
            if values.get(auto) and row is None:
                error = error or _("%s: no such row") % auto
            _add(plan, model, line, values, error, row, update=update)
    return plan


def apply_row_plan(model: Any, plan: RowPlan) -> None:
    """Write the new and changed rows in one transaction; leases are not touched.

    Raises:
        ImportRefused: another process added one of the same rows meanwhile.
        DatabaseUnavailable: a row stayed locked, or the connection was lost. Nothing was written.
    """
    using = model.pool.using
    try:
        with fail_if_locked(using):
            for instance, columns in plan.writes:
                instance.save(using=using, update_fields=columns, force_insert=columns is None)
    except IntegrityError as error:
        why = gettext_noop(
            "not imported: some of the same rows were added by someone else meanwhile; try again"
        )
        raise ImportRefused(Sentence(why)) from error


def _read(model: Any, text: str) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    if len(lines) > MAX_ROWS:
        raise ImportRefused(Sentence(gettext_noop("more than %(count)s lines"), count=f"{MAX_ROWS:,}"))
    known = import_columns(model)
    exported = {column.attname for column in model._meta.concrete_fields} | {"state"}  # the others are ignored
    first = lines[0] if lines else ""
    for delimiter in ",;\t":
        reader = csv.reader(io.StringIO("".join(lines), newline=""), delimiter=delimiter, strict=True)
        names = [name.strip().lower() for name in next(csv.reader([first], delimiter=delimiter), [])]
        if known.keys() & set(names) and set(names) <= exported and len(set(names)) == len(names):
            return names, _records(reader, names)
    why = gettext_noop("the first line must be a header of some of these columns: %(names)s")
    raise ImportRefused(Sentence(why, names=", ".join(known)))


def _records(reader: Any, names: list[str]) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        next(reader)
        for cells in reader:
            if any(cells):
                padded = [cell.strip() for cell in cells] + [""] * (len(names) - len(cells))
                extra = {"": ""} if len(cells) > len(names) else {}
                yield reader.line_num, dict(zip(names, padded, strict=False)) | extra
    except csv.Error as error:
        why = gettext_noop("line %(count)s: the quotes of this CSV row do not match (%(error)s)")
        raise ImportRefused(Sentence(why, count=reader.line_num, error=error)) from None


def _key(model: Any, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of the file that identify a row; empty: every row is new."""
    if model._meta.pk.attname in names:
        return (model._meta.pk.attname,)
    constraints = [
        [model._meta.get_field(name).attname for name in one.fields]
        for one in model._meta.total_unique_constraints
        if isinstance(one, UniqueConstraint)
    ]
    unique = [
        [column.attname] for column in model._meta.concrete_fields if column.unique and not column.primary_key
    ]
    return next((tuple(columns) for columns in (*constraints, *unique) if set(columns) <= set(names)), ())


def _parse(model: Any, cells: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """Return the values of a row, and what is wrong with the first wrong one, without the value."""
    values: dict[str, Any] = {}
    if "" in cells:
        return values, _("more cells than the header has")
    columns = import_columns(model)
    for name, text in cells.items():
        if name not in columns:
            continue
        try:
            values[name] = _value(columns[name], text)
        except (ValidationError, ValueError, TypeError, RecursionError):
            return values, _("%(name)s: not an allowed value") % {"name": name}
    return values, ""


def _value(column: Any, text: str) -> Any:
    if isinstance(column, EncryptedTextField) or (
        text == "" and column.empty_strings_allowed and not column.null
    ):
        return text
    if text == "":
        return None if column.null else column.get_default()
    return json.loads(text) if isinstance(column, JSONField) else column.to_python(text)


def _existing(model: Any, key: Sequence[str], rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], Any]:
    identities = [{name: values[name] for name in key} for values in rows if set(key) <= values.keys()]
    if not key or not identities:
        return {}
    connection = connections[model.pool.using]
    found = model._default_manager.using(connection.alias).filter(
        Q(*(Q(**identity) for identity in identities), _connector=Q.OR)
    )
    existing = retrying(connection, lambda: list(found.all()))
    return {tuple(getattr(row, name) for name in key): row for row in existing}


def _add(
    plan: RowPlan, model: Any, line: int, values: dict[str, Any], error: str, existing: Any, *, update: bool
) -> None:
    """Add what happens with one row to the plan."""
    row = model() if existing is None else existing
    secrets = [name for name, column in import_columns(model).items() if isinstance(column, EncryptedTextField)]
    given = {name: value for name, value in values.items() if value or name not in secrets}
    changes = [] if error else [_change(row, name, value, name in secrets) for name, value in given.items()]
    changed = [
        change for change in changes if existing is None or change.old != change.new or change.new == SET
    ]
    for name, value in given.items() if not error else ():
        setattr(row, name, value)
    error = error or _wrong(row)
    if error:
        plan.rows.append(RowChange(line, WRONG, "", note=error))
    elif existing is None:
        plan.rows.append(RowChange(line, NEW, str(row), tuple(one for one in changed if one.new)))
        plan.writes.append((row, None))
    elif not changed or not update:
        note = _("differs in %s; left unchanged") % ", ".join(one.field for one in changed) if changed else ""
        plan.rows.append(RowChange(line, UNCHANGED, str(row), note=note))
    else:
        plan.rows.append(RowChange(line, CHANGED, str(row), tuple(changed)))
        plan.writes.append((row, [model._meta.get_field(one.field).name for one in changed]))


def _change(row: Any, name: str, value: Any, is_secret: bool) -> Change:
    if is_secret:
        return Change(name, SET if row.__dict__.get(name) else "", SET)
    return Change(name, _text(getattr(row, name)), _text(value))


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _wrong(row: Any) -> str:
    """Return what is wrong with a row as a whole; "" if nothing is."""
    try:
        row.clean_fields()
        row.clean()
    except ValidationError as error:
        names = ", ".join(error.message_dict) if hasattr(error, "error_dict") else ""
        return _("%(name)s: not an allowed value") % {"name": names} if names else " ".join(error.messages)
    return ""
