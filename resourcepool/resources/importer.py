"""Imports rows of any resource model from CSV: a plan of each row's change, then all or nothing."""

import csv
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from django.core.exceptions import ValidationError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import AutoField, JSONField, UniqueConstraint

from resourcepool.db.rows import in_chunks
from resourcepool.encryption.field import EncryptedTextField
from resourcepool.encryption.secret import clear_frame_variables
from resourcepool.events import sentence_for
from resourcepool.exceptions import ImportRefused
from resourcepool.leases.models import LEASE_COLUMNS
from resourcepool.resources.import_file import (
    BadField,
    BadLine,
    CellReader,
    NumberedLine,
    ParsedFile,
    Row,
    display_name,
    import_refused,
    read_csv,
    read_lines,
)
from resourcepool.resources.import_plan import ImportPlan, ProgressCallback, no_progress
from resourcepool.resources.import_result import BadLines, ImportResult
from resourcepool.resources.queryset import ResourceQuerySet
from resourcepool.resources.state import STATE_COLUMNS
from resourcepool.translation import gettext_lazy, gettext_noop as _

CHUNK = 5_000  # rows per read
FEW = 500  # so few rows of a file are looked for one by one, instead of reading the whole table
PROGRESS_EVERY = 1_000  # lines
NOT_ALLOWED = _("not an allowed value")


class Importer:
    """Imports rows of one model. A row is an existing one if the columns in the file that identify it are equal.

    Attributes:
        parsers: {column that an import may write: parses a cell}; a parser raises BadField.
        columns: the names that a header may have; ``exported`` ones are ignored.
        found_by: position in the key of the column by which few rows are looked for.
        secrets: the encrypted ones among these columns.
        never_begin_with_hash: if the first column is one of these, rows that begin with # are comments.
    """

    help: ClassVar[Any] = gettext_lazy(
        "CSV with a header of some of these columns: %(columns)s. UTF-8, at most 1 MB."
    )
    found_by: ClassVar[int] = -1
    never_begin_with_hash: ClassVar[Collection[str]] = ()

    def __init__(self, model: Any) -> None:
        fields, state = model._meta.concrete_fields, LEASE_COLUMNS | STATE_COLUMNS
        self.model = model
        self.exported = {one.attname for one in fields} | {"state"}  # what is not written is ignored
        self.parsers: Mapping[str, Callable[[str], Any]] = {
            one.attname: partial(_parse, one)
            for one in fields
            if (one.primary_key or one.editable) and one.attname not in state
        }
        self.columns: Sequence[str] = tuple(self.parsers)
        self.secrets = [one.attname for one in fields if isinstance(one, EncryptedTextField)]

    @clear_frame_variables()
    def run(
        self,
        name: str,
        *,
        update: bool = False,
        sync: bool = False,
        skip_bad: bool = False,
        dry_run: bool = False,
        progress: ProgressCallback = no_progress,
        stream: BinaryIO | None = None,
        actor: str = "",
        compare_secrets: bool = True,
    ) -> ImportResult:
        """Import the file ``name`` ("-": standard input) in one transaction; return the result.

        Args:
            update: update existing rows from the columns in the file. An empty secret keeps the stored one.
            sync: retire rows that are not in the file (held ones after their lease), and return retired ones in it to
                service. Retires nothing if lines are skipped.
            skip_bad: skip bad lines and import the rest.
            dry_run: only compute the result.
            progress: called with the progress, see ``ProgressCallback``.
            stream: the source of the bytes, instead of the file of this name.
            actor: the operator, for the history of retired and returned rows.
            compare_secrets: False for users who may not see stored secrets, and could otherwise test guesses. Then
                every secret in the file counts as different.

        Raises:
            BadLines: the file has bad lines; nothing was imported.
            ImportRefused: the file cannot be used; nothing was imported.
            DatabaseUnavailable, NotMigrated, SecretUnreadable: nothing was imported.
        """
        try:
            parsed = self.read(read_lines(name, stream), progress)
            if sync and not parsed.key:
                raise import_refused(_("sync needs a column that identifies a row"))
            if not parsed.rows or parsed.is_stopped or (parsed.bad and not skip_bad):
                raise BadLines(parsed.bad, parsed.bad_count)
            plan = ImportPlan(self, parsed, update=update, sync=sync, compare_secrets=compare_secrets)
            plan.make(progress)
            if plan.result.bad and not skip_bad:
                raise BadLines(parsed.bad, parsed.bad_count)
        except ImportRefused as error:
            error.args = (sentence_for("about", name=display_name(name), why=str(error)),)
            raise
        if not dry_run:
            reason = sentence_for("not_in_file", file=Path(display_name(name)).name)
            plan.result.retired = plan.apply(reason, progress, actor)
        return plan.result

    def read(self, lines: Iterator[NumberedLine], progress: ProgressCallback = no_progress) -> ParsedFile:
        """Parse the numbered ``lines`` of a file.

        Raises:
            ImportRefused: the file has no rows, or is a CSV file with a wrong header or quotes.
        """
        names, rows = self.parse(lines)
        key = self.key(names)
        parsed = ParsedFile(key, [name for name in self.parsers if name in names and name not in key])
        for count, (number, cells) in enumerate(rows, 1):
            parsed.add(self.row(number, cells))
            if parsed.is_stopped:
                break
            if count % PROGRESS_EVERY == 0:
                progress("read", count, None)
        if not parsed.rows and not parsed.bad:
            raise import_refused(_("empty: a header, but no rows"))
        return parsed

    def parse(self, lines: Iterator[NumberedLine]) -> tuple[Collection[str], Iterator[tuple[int, CellReader]]]:
        """Return the columns of a file, and its rows with line numbers."""
        first = next((line for line in lines if is_significant(line[1])), None)
        if first is None:
            raise import_refused(_("empty: no rows"))
        for delimiter in ",;\t":
            names = [
                "".join(name.lower().split()) for name in next(csv.reader([first[1]], delimiter=delimiter))
            ]
            if set(self.columns).intersection(names):
                self.check_header(names)
                has_comments = names[0] in self.never_begin_with_hash
                return names, read_csv(lines, names, delimiter, has_comments=has_comments)
        return self.parse_without_header(chain([first], lines))

    def check_header(self, names: list[str]) -> None:
        """Raise ImportRefused for unknown or repeated columns."""
        known = ", ".join(self.columns)
        if unknown := sorted(set(names).difference(self.columns, self.exported)):
            # Mostly unknown names: the line may be a row with a secret instead of a header, so they are not shown.
            if 2 * len(unknown) > len(names):
                raise import_refused(_("the header has unknown columns; allowed: %(known)s"), known=known)
            why = _("the header has unknown columns: %(names)s; allowed: %(known)s")
            raise import_refused(why, names=", ".join(repr(name[:40]) for name in unknown), known=known)
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise import_refused(_("the header repeats a column: %(names)s"), names=", ".join(repeated))

    def parse_without_header(
        self, lines: Iterator[NumberedLine]
    ) -> tuple[Collection[str], Iterator[tuple[int, CellReader]]]:
        """Return the columns and rows of a file whose first line is no header."""
        why = _("the first line must be a header of some of these columns: %(names)s")
        raise import_refused(why, names=", ".join(self.columns))

    def key(self, names: Collection[str]) -> Sequence[str]:
        """Return those of the columns in the file that identify a row; none: every row is new."""
        meta = self.model._meta
        if meta.pk.attname in names:
            return (meta.pk.attname,)
        constraints = [
            [meta.get_field(name).attname for name in one.fields]
            for one in meta.total_unique_constraints
            if isinstance(one, UniqueConstraint)
        ]
        unique = [[one.attname] for one in meta.concrete_fields if one.unique and not one.primary_key]
        return next((columns for columns in (*constraints, *unique) if set(columns) <= set(names)), ())

    def row(self, line: int, cells: CellReader) -> Row | BadLine:
        """Parse the cells of line number ``line``."""
        try:
            return Row(
                line, {name: self.parsers[name](text) for name, text in cells().items() if name in self.parsers}
            )
        except BadField as error:
            return BadLine(line, error.field, error.reason)

    def existing(self, parsed: ParsedFile, *, whole: bool) -> Iterator[Any]:
        """Yield the existing rows: those that may be in the file, or the ``whole`` table."""
        rows = ResourceQuerySet(model=self.model, using=self.model.pool.using)
        if not parsed.key:
            return
        if not whole and len(parsed.rows) <= FEW:
            name = parsed.key[self.found_by]
            rows = rows.filter(**{f"{name}__in": {row.values[name] for row in parsed.rows.values()}})
        yield from in_chunks(rows, CHUNK)

    def note(self, row: Row) -> str:
        """Return what else there is to know of a new row."""
        return ""

    def prepare(self, row: Row, stored: Any) -> Any:
        """Return a row of the file in the form that ``insert`` and ``update`` write.

        Args:
            stored: the existing row; None: it is new.

        Raises:
            BadField: the row is not valid.
        """
        pk = self.model._meta.pk
        if stored is None and isinstance(pk, AutoField) and row.values.get(pk.attname):
            raise BadField(pk.attname, _("no such row"))  # the database gives new keys
        instance = self.model() if stored is None else stored
        for name, value in row.values.items():
            if value or name not in self.secrets:
                setattr(instance, name, value)
        try:
            instance.clean_fields()
            instance.clean()
        except ValidationError as error:
            if hasattr(error, "error_dict"):
                raise BadField(", ".join(error.message_dict), NOT_ALLOWED) from None
            raise BadField("row", "%(why)s", why=" ".join(error.messages)) from None
        return instance

    def insert(self, connection: BaseDatabaseWrapper, rows: Sequence[Any]) -> None:
        """Insert these rows; raises IntegrityError if one exists already."""
        for row in rows:
            row.save(using=connection.alias, force_insert=True)

    def update(self, connection: BaseDatabaseWrapper, rows: Sequence[Any], columns: Sequence[str]) -> None:
        """Write ``columns`` of these existing rows."""
        names = [self.model._meta.get_field(column).name for column in columns]
        for row in rows:
            row.save(using=connection.alias, update_fields=names)


def is_significant(text: str) -> bool:
    """Return whether a line is neither empty nor a comment."""
    text = text.strip()
    return bool(text) and not text.startswith("#")


def _parse(column: Any, text: str) -> Any:
    """Return the value of a cell; raises BadField."""
    if isinstance(column, EncryptedTextField) or (
        text == "" and column.empty_strings_allowed and not column.null
    ):
        return text
    if text == "":
        return None if column.null else column.get_default()
    try:
        return json.loads(text) if isinstance(column, JSONField) else column.to_python(text)
    except (ValidationError, ValueError, TypeError, RecursionError):
        raise BadField(column.attname, NOT_ALLOWED) from None
