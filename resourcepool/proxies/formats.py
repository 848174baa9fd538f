"""The two forms a list of proxies comes in: CSV with a header, or one address a line."""

import csv
from collections.abc import Iterable, Iterator

from django.utils.translation import gettext_noop as _

from resourcepool.events import Sentence
from resourcepool.exceptions import ImportRefused
from resourcepool.proxies.address import address
from resourcepool.proxies.fields import DETAILS, IDENTITY, BadField
from resourcepool.proxies.models import Proxy

COLUMNS = (*IDENTITY, *DETAILS)
ADDRESS_COLUMNS = frozenset({*IDENTITY, "password"})  # what a column "url" stands for
_NEVER_BEGIN_WITH_HASH = ("url", "scheme", "host", "port", "country")

Numbered = tuple[int, str]


class Addresses:
    """One address a line, see ``address``; blank lines and lines that begin with # are left out."""

    details = frozenset({"password"})  # which columns it has, besides those that identify a proxy
    has_header = False

    def records(self, lines: Iterable[Numbered]) -> Iterator[tuple[int, str]]:
        """Yield (line number, address) for every proxy."""
        return ((number, text.strip()) for number, text in lines if significant(text))

    def cells(self, record: str) -> dict[str, str]:
        """Return an address as {column: text}; raises BadField."""
        return address(record)


class Csv:
    """CSV with a header. Blanks around a cell do not count.

    A row that begins with # is a comment where the first column cannot begin so.
    """

    has_header = True

    def __init__(self, columns: list[str], delimiter: str) -> None:
        self.columns, self.delimiter = columns, delimiter
        self._has_comments = columns[0] in _NEVER_BEGIN_WITH_HASH
        named = set(columns) | (ADDRESS_COLUMNS if "url" in columns else set())
        self.details = frozenset(named.intersection(DETAILS))

    def records(self, lines: Iterable[Numbered]) -> Iterator[tuple[int, list[str]]]:
        """Yield (line number, cells) for every proxy.

        Raises:
            ImportRefused: quotes do not match, and what follows cannot be relied on.
        """
        begins: int | None = None

        def texts() -> Iterator[str]:
            nonlocal begins
            for number, text in lines:
                begins = begins or number
                yield text + "\n"

        rows = csv.reader(texts(), delimiter=self.delimiter, skipinitialspace=True, strict=True)
        try:
            for record in rows:
                cells, line, begins = [cell.strip() for cell in record], begins or 0, None
                if any(cells) and not (self._has_comments and cells[0].startswith("#")):
                    yield line, cells
        except csv.Error as error:
            raise ImportRefused(
                Sentence(
                    _("line %(count)s: the quotes of this CSV row do not match (%(error)s)"),
                    count=begins,
                    error=error,
                )
            ) from None

    def cells(self, record: list[str]) -> dict[str, str]:
        """Return a row as {column: text}; raises BadField."""
        if len(record) != len(self.columns):
            raise BadField(
                "columns",
                Sentence(
                    _(
                        "%(count)s cells, but the header has %(count_columns)s (a cell with a %(delimiter)s in it needs"
                        " quotes)"
                    ),
                    count=len(record),
                    count_columns=len(self.columns),
                    delimiter=repr(self.delimiter),
                ),
            )
        found = dict(zip(self.columns, record, strict=True))
        if "url" in found:
            found |= address(found.pop("url"))
        return found


Format = Addresses | Csv


def format_of(first: str) -> Format:
    """Return the format of a file whose first significant line is this one.

    Raises:
        ImportRefused: it is the header of a CSV file, but not a good one; says what is allowed.
    """
    for delimiter in ",;\t":
        names = ["".join(name.lower().split()) for name in next(csv.reader([first], delimiter=delimiter))]
        if {"url", *COLUMNS}.intersection(names):
            _check_header(names)
            return Csv(names, delimiter)
    return Addresses()


def significant(text: str) -> bool:
    """Tell whether a line is neither blank nor a comment."""
    text = text.strip()
    return bool(text) and not text.startswith("#")


def _check_header(names: list[str]) -> None:
    unknown = sorted({name[:40] for name in names if name not in {"url", *COLUMNS}})
    if unknown:
        known = f"url, {', '.join(COLUMNS)}"
        exported = {field.name for field in Proxy._meta.concrete_fields} | {"state"}
        # With many others the line may be no header, but a proxy with a password.
        if 2 * len(unknown) > len(names) and not exported.issuperset(unknown):
            raise ImportRefused(
                Sentence(_("the header has unknown columns; there are: %(known)s"), known=known)
            )
        named = ", ".join(map(repr, unknown))
        raise ImportRefused(
            Sentence(
                _("the header has unknown columns: %(names)s; there are: %(known)s"), names=named, known=known
            )
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ImportRefused(Sentence(_("the header has a column twice: %(names)s"), names=", ".join(twice)))
    doubled = sorted(ADDRESS_COLUMNS.intersection(names)) if "url" in names else []
    if doubled:
        raise ImportRefused(
            Sentence(_("the header has url and %(names)s, which url already says"), names=", ".join(doubled))
        )
    missing = [] if "url" in names else [name for name in ("host", "port") if name not in names]
    if missing:
        raise ImportRefused(Sentence(_("the header lacks %(names)s (or url)"), names=" and ".join(missing)))
