"""The formats of lists of proxies: CSV with a header, or one address per line."""

import csv
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

from resourcepool.proxies.address import address
from resourcepool.proxies.fields import DETAILS, IDENTITY, BadField, import_refused
from resourcepool.proxies.models import Proxy
from resourcepool.translation import gettext_noop as _

COLUMNS = (*IDENTITY, *DETAILS)
ADDRESS_COLUMNS = frozenset({*IDENTITY, "password"})  # contained in the column "url"
_NEVER_BEGIN_WITH_HASH = ("url", "scheme", "host", "port", "country")

NumberedLine = tuple[int, str]
CellReader = Callable[[], dict[str, str]]  # returns one proxy as {column: text}; raises BadField


def parse(lines: Iterator[NumberedLine]) -> tuple[frozenset[str], Iterator[tuple[int, CellReader]]]:
    """Return the detail columns of a file (without those that identify a proxy), and its proxies with line numbers.

    Raises:
        ImportRefused: the file is empty, or has a wrong CSV header; or, while the proxies are read: the quotes of a row
            do not match, so the following rows are unreliable.
    """
    first = next((line for line in lines if _significant(line[1])), None)
    if first is None:
        raise import_refused(_("empty: no proxies"))
    for delimiter in ",;\t":
        names = ["".join(name.lower().split()) for name in next(csv.reader([first[1]], delimiter=delimiter))]
        if {"url", *COLUMNS}.intersection(names):
            _check_header(names)
            columns = {*names, *(ADDRESS_COLUMNS if "url" in names else ())}
            return frozenset(columns.intersection(DETAILS)), _read_csv(lines, names, delimiter)
    addresses = ((number, text.strip()) for number, text in chain([first], lines) if _significant(text))
    return frozenset({"password"}), ((number, partial(address, text)) for number, text in addresses)


def _read_csv(
    lines: Iterator[NumberedLine], columns: list[str], delimiter: str
) -> Iterator[tuple[int, CellReader]]:
    """Yield the line number of each row, and a function that returns its cells; raises ImportRefused.

    A row that begins with # is a comment, unless values of the first column may begin with #.
    """
    has_comments = columns[0] in _NEVER_BEGIN_WITH_HASH
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
                yield line, partial(_cells, cells, columns, delimiter)
    except csv.Error as error:
        why = _("line %(count)s: the quotes of this CSV row do not match (%(error)s)")
        raise import_refused(why, count=first_line, error=error) from None


def _cells(cells: list[str], columns: list[str], delimiter: str) -> dict[str, str]:
    if len(cells) != len(columns):
        text = _(
            "%(count)s cells, but the header has %(count_columns)s (put cells that contain %(delimiter)s in"
            " quotes)"
        )
        counts = {"count": len(cells), "count_columns": len(columns)}
        raise BadField("columns", text, **counts, delimiter=repr(delimiter))
    values = dict(zip(columns, cells, strict=True))
    if "url" in values:
        values |= address(values.pop("url"))
    return values


def _significant(text: str) -> bool:
    text = text.strip()
    return bool(text) and not text.startswith("#")


def _check_header(names: list[str]) -> None:
    if unknown := sorted({name[:40] for name in names if name not in {"url", *COLUMNS}}):
        known = f"url, {', '.join(COLUMNS)}"
        exported = {field.name for field in Proxy._meta.concrete_fields} | {"state"}
        # Mostly unknown names: the line may be a proxy with a password instead of a header, so they are not shown.
        if 2 * len(unknown) > len(names) and not exported.issuperset(unknown):
            raise import_refused(_("the header has unknown columns; allowed: %(known)s"), known=known)
        why = _("the header has unknown columns: %(names)s; allowed: %(known)s")
        raise import_refused(why, names=", ".join(map(repr, unknown)), known=known)
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise import_refused(_("the header repeats a column: %(names)s"), names=", ".join(repeated))
    doubled = sorted(ADDRESS_COLUMNS.intersection(names)) if "url" in names else []
    if doubled:
        raise import_refused(
            _("the header has both url and %(names)s, which url already contains"), names=", ".join(doubled)
        )
    missing = [] if "url" in names else [name for name in ("host", "port") if name not in names]
    if missing:
        raise import_refused(_("the header lacks %(names)s (or url)"), names=" and ".join(missing))
