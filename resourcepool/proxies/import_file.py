"""Reads the proxies and the bad lines of a file. Uses no database."""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from resourcepool.encryption.secret import EncryptedSecret
from resourcepool.events import Sentence
from resourcepool.proxies.fields import FIELD_PARSERS, IDENTITY, BadField, import_refused
from resourcepool.proxies.formats import NumberedLine, parse
from resourcepool.text import printable
from resourcepool.translation import gettext_noop as _

MAX_LINES = 500_000  # about half a gigabyte of memory
MAX_BYTES = 100_000_000
MAX_LINE_BYTES = 100_000
MAX_BAD_LINES_KEPT = 20  # the others are only counted
MAX_BAD_LINES = 10_000  # then reading stops: bad lines cost more than good ones
PROGRESS_EVERY = 1_000  # lines

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BOM = "\ufeff"

Identity = tuple[str, str, int, str]  # scheme, host, port, user name

ProgressCallback = Callable[[str, int, int | None], None]
"""Called with the current step, the number of finished items, and their total (None: unknown)."""

COMMITTING = "committing"
"""The last step. An import interrupted before it has stored nothing; during it, perhaps everything."""


def no_progress(step: str, done: int, total: int | None) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True)
class Row:
    """A proxy in the file. Its password is plain text at first, and encrypted before it is stored."""

    line: int
    scheme: str
    host: str
    port: int
    username: str
    password: str | EncryptedSecret = field(repr=False)
    country: str
    tags: str
    weight: int
    notes: str

    @property
    def identity(self) -> Identity:
        """The columns that identify a proxy."""
        return self.scheme, self.host, self.port, self.username


@dataclass(frozen=True, slots=True)
class BadLine:
    """A bad line, with the wrong field and the reason; ``host`` only if the address of the line is valid."""

    line: int
    field: str
    reason: str
    host: str = ""

    def __str__(self) -> str:
        parameters = {"count": self.line, "field": self.field, "why": self.reason}
        if self.host:
            return Sentence(_("line %(count)s (%(host)s): %(field)s: %(why)s"), host=self.host, **parameters)
        return Sentence(_("line %(count)s: %(field)s: %(why)s"), **parameters)


@dataclass
class ParsedFile:
    """The content of a file.

    Attributes:
        details: its columns, besides those that identify a proxy.
        rows: the good lines.
        bad: the first bad lines.
        bad_count: the number of all bad lines.
        repeated: the number of lines that are exact copies of an earlier one.
        is_stopped: reading stopped, because of too many bad lines.
    """

    details: frozenset[str]
    rows: dict[Identity, Row] = field(default_factory=dict)
    bad: list[BadLine] = field(default_factory=list)
    bad_count: int = 0
    repeated: int = 0
    is_stopped: bool = False

    def add(self, line: Row | BadLine) -> None:
        """Add a line. A second line for the same proxy is bad, unless it is an exact copy."""
        if isinstance(line, Row):
            first = self.rows.setdefault(line.identity, line)
            if first is line:
                return
            if replace(line, line=first.line) == first:
                self.repeated += 1
                return
            reason = Sentence(_("the same scheme, host, port and username as line %(count)s"), count=first.line)
            line = BadLine(line.line, "proxy", reason, line.host)
        self.bad_count += 1
        if len(self.bad) < MAX_BAD_LINES_KEPT:
            self.bad.append(line)
        if self.bad_count >= MAX_BAD_LINES:
            self.is_stopped = True
            why = _("stopped reading here: bad lines: %(count)s. Is this a list of proxies?")
            self.bad[-1] = BadLine(line.line, "file", Sentence(why, count=f"{MAX_BAD_LINES:,}"))


def read(lines: Iterator[NumberedLine], progress: ProgressCallback = no_progress) -> ParsedFile:
    """Parse the numbered ``lines`` of a file.

    Raises:
        ImportRefused: the file has no proxies, or is a CSV file with a wrong header or quotes.
    """
    details, proxies = parse(lines)
    reading = ParsedFile(details)
    for count, (number, cells) in enumerate(proxies, 1):
        try:
            reading.add(row(number, cells()))
        except BadField as error:
            reading.add(BadLine(number, error.field, error.reason))
        if reading.is_stopped:
            break
        if count % PROGRESS_EVERY == 0:
            progress("read", count, None)
    if not reading.rows and not reading.bad:
        raise import_refused(_("empty: a header, but no proxies"))
    return reading


def row(line: int, cells: Mapping[str, str]) -> Row | BadLine:
    """Parse the ``cells`` ({column: text}; missing ones are empty) of line number ``line``."""
    values = {}
    for name, parse_field in FIELD_PARSERS.items():
        try:
            values[name] = parse_field(cells.get(name, ""))
        except BadField as error:
            # If the address is wrong, the text in place of the host may be a password.
            host = "" if name in IDENTITY else values["host"]
            return BadLine(line, error.field, error.reason, host)
    return Row(line, **values)


def display_name(name: str) -> str:
    """Return the name of the file for messages, without control characters, which a terminal would obey."""
    return "standard input" if name == "-" else printable(name)


def read_lines(name: str, stream: BinaryIO | None = None) -> Iterator[tuple[int, str]]:
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


def _lines(stream: BinaryIO) -> Iterator[tuple[int, str]]:
    size = number = 0
    while raw := stream.readline(MAX_LINE_BYTES + 1):
        number, size = number + 1, size + len(raw)
        if number == 1 and raw.startswith(_UTF16):
            raise import_refused(_("UTF-16 text; save it as UTF-8"))
        if number > MAX_LINES or size > MAX_BYTES:
            why = _("too large: at most %(count_lines)s lines and %(count_bytes)s MB; split it")
            raise import_refused(why, count_lines=f"{MAX_LINES:,}", count_bytes=MAX_BYTES // 1_000_000)
        text = _text(raw, number)
        yield number, text.removeprefix(_BOM) if number == 1 else text


def _text(raw: bytes, number: int) -> str:
    if b"\0" in raw:
        why = _("line %(count)s, byte %(count_byte)s is a NUL: this is a binary file, not text")
        raise import_refused(why, count=number, count_byte=raw.index(0) + 1)
    if len(raw) > MAX_LINE_BYTES:
        why = _("line %(count)s is longer than %(count_most)s bytes: this is not a list of proxies")
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
