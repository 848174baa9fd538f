"""Reads files to import: their lines, the rows of a CSV file, and what is wrong with them. Uses no database."""

import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from resourcepool.events import Sentence, sentence_for
from resourcepool.exceptions import ImportRefused, ResourcePoolError
from resourcepool.text import printable
from resourcepool.translation import gettext_noop as _

MAX_LINES = 500_000  # less than a gigabyte of memory
MAX_BYTES = 100_000_000
MAX_LINE_BYTES = 100_000
MAX_BAD_LINES_KEPT = 20  # the others are only counted
MAX_BAD_LINES = 10_000  # then reading stops: bad lines cost more than good ones

_BOM = "\ufeff"

NumberedLine = tuple[int, str]
Identity = tuple[Any, ...]  # the values of the columns that identify a row
CellReader = Callable[[], dict[str, str]]  # returns one row as {column: text}; raises BadField


class BadField(ResourcePoolError, ValueError):
    """A value that is not allowed; has the field and the reason, never the value: it may be a shifted password."""

    def __init__(self, field: str, reason: str, **parameters: object) -> None:
        self.field, self.reason = field, Sentence(reason, **parameters)
        super().__init__(sentence_for("about", name=field, why=self.reason))


def import_refused(why: str, **parameters: object) -> ImportRefused:
    return ImportRefused(Sentence(why, **parameters))


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the file."""

    line: int
    values: dict[str, Any] = field(repr=False)  # with secrets in plain text


@dataclass(frozen=True, slots=True)
class BadLine:
    """A bad line, with the wrong field and the reason."""

    line: int
    field: str
    reason: str

    def __str__(self) -> str:
        text = _("line %(count)s: %(field)s: %(why)s")
        return Sentence(text, count=self.line, field=self.field, why=self.reason)


@dataclass
class ParsedFile:
    """The content of a file.

    Attributes:
        key: the columns that identify a row; empty: every row is new.
        details: its other columns.
        rows: the good lines.
        bad: the first bad lines.
        bad_count: the number of all bad lines.
        repeated: the number of lines that are exact copies of an earlier one.
        is_stopped: reading stopped, because of too many bad lines.
    """

    key: Sequence[str]
    details: Sequence[str]
    rows: dict[Identity, Row] = field(default_factory=dict)
    bad: list[BadLine] = field(default_factory=list)
    bad_count: int = 0
    repeated: int = 0
    is_stopped: bool = False

    def add(self, line: Row | BadLine) -> None:
        """Add a line. A second line for the same row is bad, unless it is an exact copy."""
        if isinstance(line, Row):
            identity = tuple(line.values[name] for name in self.key)
            first = self.rows.setdefault(
                identity if identity and None not in identity else (None, line.line), line
            )
            if first is line:
                return
            if line.values == first.values:
                self.repeated += 1
                return
            why = Sentence(
                _("the same %(names)s as line %(count)s"), names=", ".join(self.key), count=first.line
            )
            line = BadLine(line.line, "row", why)
        self.bad_count += 1
        if len(self.bad) < MAX_BAD_LINES_KEPT:
            self.bad.append(line)
        if self.bad_count >= MAX_BAD_LINES:
            self.is_stopped = True
            why = Sentence(_("stopped reading here: bad lines: %(count)s"), count=f"{MAX_BAD_LINES:,}")
            self.bad[-1] = BadLine(line.line, "file", why)


def read_csv(
    lines: Iterator[NumberedLine], columns: Sequence[str], delimiter: str, *, has_comments: bool
) -> Iterator[tuple[int, CellReader]]:
    """Yield the line number of each row, and a function that returns its cells.

    Args:
        has_comments: a row that begins with # is a comment.

    Raises:
        ImportRefused: the quotes of a row do not match, so the following rows are unreliable.
    """
    first_line: int | None = None  # of the current row, whose quoted cells may contain line breaks

    def texts() -> Iterator[str]:
        nonlocal first_line
        for number, text in lines:
            first_line = first_line or number
            yield text + "\n"

    try:
        for record in csv.reader(texts(), delimiter=delimiter, skipinitialspace=True, strict=True):
            cells, line, first_line = [cell.strip() for cell in record], first_line or 0, None
            if any(cells) and not (has_comments and cells[0].startswith("#")):
                yield line, partial(_by_column, cells, columns, delimiter)
    except csv.Error as error:
        why = _("line %(count)s: the quotes of this CSV row do not match (%(error)s)")
        raise import_refused(why, count=first_line, error=error) from None


def _by_column(cells: list[str], columns: Sequence[str], delimiter: str) -> dict[str, str]:
    if len(cells) != len(columns):
        text = _(
            "%(count)s cells, but the header has %(count_columns)s (put cells that contain %(delimiter)s in"
            " quotes)"
        )
        counts = {"count": len(cells), "count_columns": len(columns)}
        raise BadField("columns", text, **counts, delimiter=repr(delimiter))
    return dict(zip(columns, cells, strict=True))


def display_name(name: str) -> str:
    """Return the name of the file for messages, without control characters, which a terminal would obey."""
    return "standard input" if name == "-" else printable(name)


def read_lines(name: str, stream: BinaryIO | None = None) -> Iterator[NumberedLine]:
    """Yield (number, text without its line end) for every line of the file ``name``; "-" is standard input.

    Args:
        stream: the source of the bytes, instead of the file of this name.

    Raises:
        ImportRefused: the file cannot be read, is not UTF-8 text, or is too large.
    """
    try:
        if stream is None and name != "-":
            with Path(name).open("rb") as file:
                yield from _lines(file)
        else:
            yield from _lines(stream or _stdin())
    except OSError as error:
        raise import_refused(_("cannot be read: %(error)s"), error=error.strerror or error) from error


def _stdin() -> BinaryIO:
    if sys.stdin is None:
        raise import_refused(_("closed"))
    return sys.stdin.buffer


def _lines(stream: BinaryIO) -> Iterator[NumberedLine]:
    size = number = 0
    while raw := stream.readline(MAX_LINE_BYTES + 1):
        number, size = number + 1, size + len(raw)
        if number > MAX_LINES or size > MAX_BYTES:
            why = _("too large: at most %(count_lines)s lines and %(count_bytes)s MB; split it")
            raise import_refused(why, count_lines=f"{MAX_LINES:,}", count_bytes=MAX_BYTES // 1_000_000)
        text = _text(raw, number)
        yield number, text.removeprefix(_BOM) if number == 1 else text


def _text(raw: bytes, number: int) -> str:
    if b"\0" in raw:
        why = _("line %(count)s, byte %(count_byte)s is a NUL: this is a binary file or UTF-16, not UTF-8")
        raise import_refused(why, count=number, count_byte=raw.index(0) + 1)
    if len(raw) > MAX_LINE_BYTES:
        why = _("line %(count)s is longer than %(count_most)s bytes: this is not a list to import")
        raise import_refused(why, count=number, count_most=f"{MAX_LINE_BYTES:,}")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        # Not chained: the error has the whole line, with passwords.
        why = _("line %(count)s, byte %(count_byte)s: %(byte)s is not UTF-8; save the file as UTF-8")
        at = error.start
        raise import_refused(why, count=number, count_byte=at + 1, byte=f"0x{raw[at]:02x}") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if "\r" in text:
        why = _(
            "line %(count)s has a carriage return in the middle; save the file with Unix or Windows line ends"
        )
        raise import_refused(why, count=number)
    return text
