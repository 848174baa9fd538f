"""Reads proxies, and bad lines, from a file that may hold anything. Uses no database."""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from django.utils.translation import gettext_noop as _

from resourcepool.encryption.secret import EncryptedSecret
from resourcepool.events import Sentence
from resourcepool.proxies.fields import FIELD_PARSERS, IDENTITY, BadField, import_refused
from resourcepool.proxies.formats import NumberedLine, parse

MAX_LINES = 500_000  # which take about half a gigabyte of memory
MAX_BYTES = 100_000_000
MAX_LINE_BYTES = 100_000
MAX_BAD_LINES_KEPT = 20  # of the bad lines; the others are counted
MAX_BAD_LINES = 10_000  # lines, after which it is no list of proxies: each costs more than a good one
PROGRESS_EVERY = 1_000

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BOM = "\ufeff"

Identity = tuple[str, str, int, str]  # scheme, host, port, user name

ProgressCallback = Callable[[str, int, int | None], None]
"""Called with the progress: what is being done, how many are done, of how many (None: unknown)."""

COMMITTING = "committing"
"""What is being done at last: an import interrupted before has stored nothing, from then on perhaps everything."""


def no_progress(what: str, done: int, total: int | None) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True)
class Row:
    """A proxy in the file. Its password is text as long as it is read and sealed before it is stored."""

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
        """What tells two proxies apart."""
        return self.scheme, self.host, self.port, self.username


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no proxy. Says which field and why; ``host`` only if the line's address made sense."""

    line: int
    field: str
    reason: str
    host: str = ""

    def __str__(self) -> str:
        where = {"count": self.line, "field": self.field, "why": self.reason}
        if self.host:
            return Sentence(_("line %(count)s (%(host)s): %(field)s: %(why)s"), host=self.host, **where)
        return Sentence(_("line %(count)s: %(field)s: %(why)s"), **where)


@dataclass
class ParsedFile:
    """What a file says.

    Attributes:
        rows: its good lines.
        bad: the first of its bad lines.
        bad_count: how many bad lines there are.
        repeated: how many lines are exact copies of one before.
        is_stopped: there were so many bad lines that the rest was not read.
        details: which columns it has, besides those that identify a proxy.
    """

    details: frozenset[str]
    rows: dict[Identity, Row] = field(default_factory=dict)
    bad: list[BadLine] = field(default_factory=list)
    bad_count: int = 0
    repeated: int = 0
    is_stopped: bool = False

    def add(self, found: Row | BadLine) -> None:
        """Add a line. A second one for the same proxy is bad, unless it says the same."""
        if isinstance(found, Row):
            first = self.rows.setdefault(found.identity, found)
            if first is found:
                return
            if replace(found, line=first.line) == first:
                self.repeated += 1
                return
            reason = Sentence(_("the same scheme, host, port and username as line %(count)s"), count=first.line)
            found = BadLine(found.line, "proxy", reason, found.host)
        self.bad_count += 1
        if len(self.bad) < MAX_BAD_LINES_KEPT:
            self.bad.append(found)
        if self.bad_count >= MAX_BAD_LINES:
            self.is_stopped = True
            why = _("reading stopped here: bad lines: %(count)s. Is this a list of proxies?")
            self.bad[-1] = BadLine(found.line, "file", Sentence(why, count=f"{MAX_BAD_LINES:,}"))


def read(lines: Iterator[NumberedLine], progress: ProgressCallback = no_progress) -> ParsedFile:
    """Return what the numbered ``lines`` of a file say.

    Raises:
        ImportRefused: there are no proxies in it, or it is a CSV file with a wrong header or quotes.
    """
    details, found = parse(lines)
    reading = ParsedFile(details)
    for count, (number, cells) in enumerate(found, 1):
        try:
            reading.add(row(number, cells()))
        except BadField as error:
            reading.add(BadLine(number, error.field, error.reason))
        if reading.is_stopped:
            break
        if count % PROGRESS_EVERY == 0:
            progress("read", count, None)
    if not reading.rows and not reading.bad:
        raise import_refused(_("empty: there is a header, but no proxy"))
    return reading


def row(line: int, cells: Mapping[str, str]) -> Row | BadLine:
    """Return what ``cells`` ({column: text}; absent ones are empty) of line number ``line`` say."""
    values = {}
    for name, check in FIELD_PARSERS.items():
        try:
            values[name] = check(cells.get(name, ""))
        except BadField as error:
            # If the address itself is wrong, the text in the host's place may be a password.
            host = "" if name in IDENTITY else values["host"]
            return BadLine(line, error.field, error.reason, host)
    return Row(line, **values)


def display_name(name: str) -> str:
    """Return what to call the file in messages; a terminal would obey control characters."""
    return "standard input" if name == "-" else "".join(c if c.isprintable() else "?" for c in name)


def read_lines(name: str, stream: BinaryIO | None = None) -> Iterator[tuple[int, str]]:
    """Yield (number, text without its line end) for every line of the file ``name``; "-" is standard input.

    Args:
        stream: where its bytes are read from, if not from the file of this name.

    Raises:
        ImportRefused: it cannot be read, is no UTF-8 text, or is too large.
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
        why = _("line %(count)s is longer than %(count_most)s bytes: this is no list of proxies")
        raise import_refused(why, count=number, count_most=f"{MAX_LINE_BYTES:,}")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        # Not chained: the error carries the whole line.
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
