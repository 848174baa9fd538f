"""From lines of text to proxies and bad lines. No database here."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from django.utils.translation import gettext_noop as _

from resourcepool.encryption.sealed import Sealed
from resourcepool.events import Sentence
from resourcepool.exceptions import ImportRefused
from resourcepool.proxies.fields import CHECKS, IDENTITY, BadField
from resourcepool.proxies.formats import Format, Numbered, format_of, significant

KEPT = 20  # of the bad lines; the others are counted
EVERY = 1_000

Identity = tuple[str, str, int, str]  # scheme, host, port, user name

Tell = Callable[[str, int, int | None], None]
"""Hears how far things are: what is being done, how many are done, of how many (None: unknown)."""


def silent(what: str, done: int, total: int | None) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class Row:
    """A proxy in the file. Its password is text as long as it is read and sealed before it is stored."""

    line: int
    scheme: str
    host: str
    port: int
    username: str
    password: str | Sealed = field(repr=False)
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
class Reading:
    """What a file says.

    Attributes:
        rows: its good lines.
        bad: the first of its bad lines.
        bad_count: how many bad lines there are.
        details: which columns it has, besides those that identify a proxy.
    """

    details: frozenset[str]
    rows: dict[Identity, Row] = field(default_factory=dict)
    bad: list[BadLine] = field(default_factory=list)
    bad_count: int = 0

    def add(self, found: Row | BadLine) -> None:
        """Note a line. One that says the same proxy as an earlier one is bad, even if it is its very copy."""
        if isinstance(found, Row):
            first = self.rows.setdefault(found.identity, found)
            if first is found:
                return
            reason = Sentence(_("the same scheme, host, port and username as line %(count)s"), count=first.line)
            found = BadLine(found.line, "proxy", reason, found.host)
        self.bad_count += 1
        if len(self.bad) < KEPT:
            self.bad.append(found)


def read(lines: Iterator[Numbered], tell: Tell = silent) -> Reading:
    """Return what the numbered ``lines`` of a file say.

    Raises:
        ImportRefused: there are no proxies in it, or it is a CSV file with a wrong header or quotes.
    """
    beginning = next((line for line in lines if significant(line[1])), None)
    if beginning is None:
        raise ImportRefused(Sentence(_("empty: there are no proxies in it")))
    form = format_of(beginning[1])
    reading = Reading(form.details)
    for count, found in enumerate(_read(form, lines if form.has_header else chain([beginning], lines)), 1):
        reading.add(found)
        if count % EVERY == 0:
            tell("read", count, None)
    if not reading.rows and not reading.bad:
        raise ImportRefused(Sentence(_("empty: there is a header, but no proxy")))
    return reading


def _read(form: Format, lines: Iterable[Numbered]) -> Iterator[Row | BadLine]:
    for number, record in form.records(lines):
        try:
            cells = form.cells(record)  # type: ignore[arg-type]  # each its own records
        except BadField as error:
            yield BadLine(number, error.field, error.reason)
        else:
            yield row(number, cells)


def row(line: int, cells: Mapping[str, str]) -> Row | BadLine:
    """Return what ``cells`` ({column: text}; absent ones are empty) of line number ``line`` say."""
    values = {}
    for name, check in CHECKS.items():
        try:
            values[name] = check(cells.get(name, ""))
        except BadField as error:
            # Where the address itself is wrong, what stands in the host's place may be anything.
            host = "" if name in IDENTITY else values["host"]
            return BadLine(line, error.field, error.reason, host)
    return Row(line, **values)
