"""The two forms a list of proxies comes in: CSV with a header, or one address a line."""

import csv
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

from django.utils.translation import gettext_noop as _

from resourcepool.proxies.address import address
from resourcepool.proxies.fields import DETAILS, IDENTITY, BadField, import_refused
from resourcepool.proxies.models import Proxy

COLUMNS = (*IDENTITY, *DETAILS)
ADDRESS_COLUMNS = frozenset({*IDENTITY, "password"})  # what a column "url" stands for
_NEVER_BEGIN_WITH_HASH = ("url", "scheme", "host", "port", "country")

NumberedLine = tuple[int, str]
Cells = Callable[[], dict[str, str]]  # returns one proxy as {column: text}; raises BadField


def parse(lines: Iterator[NumberedLine]) -> tuple[frozenset[str], Iterator[tuple[int, Cells]]]:
    """Return the columns of a file, apart from those that identify a proxy, and every proxy with its line number.

    Raises:
        ImportRefused: there is nothing in it, or a CSV header that is not a good one; or, while the proxies are read:
            the quotes of a row do not match, so what follows cannot be relied on.
    """
    first = next((line for line in lines if _significant(line[1])), None)
    if first is None:
        raise import_refused(_("empty: there are no proxies in it"))
    for delimiter in ",;\t":
        names = ["".join(name.lower().split()) for name in next(csv.reader([first[1]], delimiter=delimiter))]
        if {"url", *COLUMNS}.intersection(names):
            _check_header(names)
            said = {*names, *(ADDRESS_COLUMNS if "url" in names else ())}
            return frozenset(said.intersection(DETAILS)), _csv(lines, names, delimiter)
    every = ((number, text.strip()) for number, text in chain([first], lines) if _significant(text))
    return frozenset({"password"}), ((number, partial(address, text)) for number, text in every)


def _csv(lines: Iterator[NumberedLine], columns: list[str], delimiter: str) -> Iterator[tuple[int, Cells]]:
    """Yield the rows. A row that begins with # is a comment, unless the first column may begin with #."""
    has_comments = columns[0] in _NEVER_BEGIN_WITH_HASH
    begins: int | None = None

    def texts() -> Iterator[str]:
        nonlocal begins
        for number, text in lines:
            begins = begins or number
            yield text + "\n"

    try:
        for record in csv.reader(texts(), delimiter=delimiter, skipinitialspace=True, strict=True):
            cells, line, begins = [cell.strip() for cell in record], begins or 0, None
            if any(cells) and not (has_comments and cells[0].startswith("#")):
                yield line, partial(_cells, cells, columns, delimiter)
    except csv.Error as error:
        why = _("line %(count)s: the quotes of this CSV row do not match (%(error)s)")
        raise import_refused(why, count=begins, error=error) from None


def _cells(cells: list[str], columns: list[str], delimiter: str) -> dict[str, str]:
    if len(cells) != len(columns):
        text = _(
            "%(count)s cells, but the header has %(count_columns)s (a cell with a %(delimiter)s in it needs quotes)"
        )
        counts = {"count": len(cells), "count_columns": len(columns)}
        raise BadField("columns", text, **counts, delimiter=repr(delimiter))
    found = dict(zip(columns, cells, strict=True))
    if "url" in found:
        found |= address(found.pop("url"))
    return found


def _significant(text: str) -> bool:
    text = text.strip()
    return bool(text) and not text.startswith("#")


def _check_header(names: list[str]) -> None:
    if unknown := sorted({name[:40] for name in names if name not in {"url", *COLUMNS}}):
        known = f"url, {', '.join(COLUMNS)}"
        exported = {field.name for field in Proxy._meta.concrete_fields} | {"state"}
        # With many others the line may be no header, but a proxy with a password.
        if 2 * len(unknown) > len(names) and not exported.issuperset(unknown):
            raise import_refused(_("the header has unknown columns; there are: %(known)s"), known=known)
        why = _("the header has unknown columns: %(names)s; there are: %(known)s")
        raise import_refused(why, names=", ".join(map(repr, unknown)), known=known)
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise import_refused(_("the header has a column twice: %(names)s"), names=", ".join(twice))
    doubled = sorted(ADDRESS_COLUMNS.intersection(names)) if "url" in names else []
    if doubled:
        raise import_refused(
            _("the header has url and %(names)s, which url already says"), names=", ".join(doubled)
        )
    missing = [] if "url" in names else [name for name in ("host", "port") if name not in names]
    if missing:
        raise import_refused(_("the header lacks %(names)s (or url)"), names=" and ".join(missing))
