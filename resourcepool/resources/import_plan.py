"""The changes of an import: computed by comparing the file with the database, written in one transaction."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.db import IntegrityError, connections

from resourcepool.db.retry import retrying
from resourcepool.db.transactions import fail_if_locked
from resourcepool.events import localized, sentence_for
from resourcepool.exceptions import DatabaseUnavailable, SecretUnreadable
from resourcepool.resources.import_file import BadField, BadLine, ParsedFile, Row, import_refused
from resourcepool.resources.import_result import (
    CHANGED,
    MAX_ROWS_SHOWN,
    NEW,
    SET,
    UNCHANGED,
    WRONG,
    Change,
    ImportResult,
    RowChange,
)
from resourcepool.resources.queryset import ResourceQuerySet
from resourcepool.resources.state import Status
from resourcepool.translation import gettext, gettext_noop as _

STEP = 5_000  # rows between two reports of progress
BATCH = 500  # rows per write

ProgressCallback = Callable[[str, int, int | None], None]
"""Called with the current step, the number of finished items, and their total (None: unknown)."""

COMMITTING = "committing"
"""The last step. An import interrupted before it has stored nothing; during it, perhaps everything."""


class ImportPlan:
    """The changes for an import of ``parsed`` by an ``Importer``; for the options see its ``run``.

    Attributes:
        result: the numbers of changes.
        new: rows to insert, as ``prepare`` returned them.
        updates: {columns to update: such rows}.
        returning: primary keys of retired rows to return to service.
        retiring: primary keys of rows to retire, because they are not in the file.
    """

    def __init__(
        self, importer: Any, parsed: ParsedFile, *, update: bool, sync: bool, compare_secrets: bool
    ) -> None:
        self._importer, self._parsed = importer, parsed
        self._update, self._sync, self._compare_secrets = update, sync, compare_secrets
        self.result = ImportResult(repeated=parsed.repeated)
        self.new: list[Any] = []
        self.updates: dict[tuple[str, ...], list[Any]] = {}
        self.returning: list[Any] = []
        self.retiring: list[Any] = []

    def make(self, progress: ProgressCallback) -> None:
        """Compare the file with the database."""
        parsed, result = self._parsed, self.result
        missing = dict(parsed.rows)
        for number, stored in enumerate(self._importer.existing(parsed, whole=self._sync), 1):
            if row := missing.pop(tuple(getattr(stored, name) for name in parsed.key), None):
                self._add(row, self._add_existing, stored)
            elif self._sync and stored.status != Status.RETIRED:
                self.retiring.append(stored.pk)
            if number % STEP == 0:
                progress("compared", number, None)
        for number, row in enumerate(missing.values(), 1):
            self._add(row, self._add_new)
            if number % STEP == 0:
                progress("prepared", number, len(missing))
        if parsed.bad:  # they may be the missing rows
            self.retiring.clear()
        result.bad, result.bad_count = parsed.bad, parsed.bad_count
        for bad in parsed.bad:
            why = sentence_for("about", name=bad.field, why=bad.reason)
            result.rows.append(RowChange(bad.line, WRONG, "", note=localized(why)))
        result.rows.sort()
        result.new, result.returned, result.retired = len(self.new), len(self.returning), len(self.retiring)

    def _add(self, row: Row, add: Callable[..., None], *stored: Any) -> None:
        try:
            add(row, *stored)
        except BadField as error:
            self._parsed.add(BadLine(row.line, error.field, error.reason))

    @property
    def _has_room(self) -> bool:
        return len(self.result.rows) < MAX_ROWS_SHOWN

    def _add_existing(self, row: Row, stored: Any) -> None:
        result, is_retired = self.result, stored.status == Status.RETIRED
        changes, returns = tuple(self._changes(row, stored)), is_retired and self._sync
        columns = tuple(change.field for change in changes)
        if changes and self._update:
            self.updates.setdefault(columns, []).append(self._importer.prepare(row, stored))
        if returns:
            self.returning.append(stored.pk)
        result.staying_retired += is_retired and not self._sync
        result.differing += bool(changes) and not self._update
        is_changed = returns or (bool(changes) and self._update)
        result.changed += is_changed
        result.unchanged += not is_changed
        if not self._has_room:
            return
        note = gettext("returns to service") if returns else ""
        if changes and not self._update:
            note = note or gettext("differs in %s; left unchanged") % ", ".join(columns)
        what, shown = CHANGED if is_changed else UNCHANGED, changes if self._update else ()
        result.rows.append(RowChange(row.line, what, str(stored), shown, note))

    def _changes(self, row: Row, stored: Any) -> Iterator[Change]:
        for name in self._parsed.details:
            value = row.values[name]
            if name not in self._importer.secrets:
                old, new = _text(getattr(stored, name)), _text(value)
                if old != new:
                    yield Change(name, old, new)
            elif value and not (self._compare_secrets or self._update):
                self.result.uncompared += 1
            elif value and not (self._compare_secrets and _is_secret(stored, name, value)):
                yield Change(name, SET if stored.__dict__[name] else "", SET)

    def _add_new(self, row: Row) -> None:
        importer = self._importer
        self.new.append(importer.prepare(row, None))
        if not self._has_room:
            return
        shown = {
            name: SET if name in importer.secrets and value else value for name, value in row.values.items()
        }
        changes = tuple(Change(name, "", _text(shown[name])) for name in self._parsed.details if shown[name])
        name = str(importer.model(**{name: shown[name] for name in shown.keys() - set(importer.secrets)}))
        self.result.rows.append(RowChange(row.line, NEW, name, changes, importer.note(row)))

    def apply(self, reason: str, progress: ProgressCallback, actor: str = "") -> int:
        """Write the changes in one transaction; return the number of rows that ``actor`` retired, for ``reason``.

        Leases are not touched: holders keep rows that are retired or changed.

        Raises:
            ImportRefused: another process added one of the same rows meanwhile.
            DatabaseUnavailable: rows stayed locked (RowLocked), or the connection was lost (then perhaps after the
                commit).
        """
        model, using = self._importer.model, self._importer.model.pool.using
        connection, rows = connections[using], ResourceQuerySet(model=model, using=using)

        def send() -> int:
            with fail_if_locked(using):
                for batch in _batches(self.new, "stored", progress):
                    self._importer.insert(connection, batch)
                for columns, updates in self.updates.items():
                    for batch in _batches(updates, "changed", progress):
                        self._importer.update(connection, batch, columns)
                for pks in _batches(self.returning):
                    rows.filter(pk__in=pks, status=Status.RETIRED).return_to_service(actor=actor)
                in_service = rows.exclude(status=Status.RETIRED)
                retired = sum(
                    in_service.filter(pk__in=pks).retire(reason, actor=actor) for pks in _batches(self.retiring)
                )
                progress(COMMITTING, 0, None)
                return retired

        def settle() -> int:
            raise DatabaseUnavailable(
                f"database {using!r}: the connection was lost while the rows were being stored; run the import again:"
                " rows that are already stored stay unchanged"
            )

        try:
            return retrying(connection, send, settle=settle)
        except IntegrityError as error:
            why = _("not imported: some of the same rows were added by someone else meanwhile; try again")
            raise import_refused(why) from error


def no_progress(step: str, done: int, total: int | None) -> None:
    """Report nothing."""


def _batches(
    items: Sequence[Any], step: str = "", progress: ProgressCallback = no_progress
) -> Iterator[Sequence[Any]]:
    """Yield ``items`` in batches; ``progress`` is called after each."""
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]
        progress(step, min(start + BATCH, len(items)), len(items))


def _is_secret(stored: Any, name: str, value: str) -> bool:
    try:
        return bool(getattr(stored, name) == value)
    except SecretUnreadable:
        return False  # so an import restores secrets whose key was lost


def _text(value: Any) -> str:
    return "" if value is None else str(value).replace("\r\n", "\n")  # browsers send \r\n
