"""Tables and moments for people. What others have written (labels, holders, reasons) may be hostile text: a terminal
obeys control characters, so none of them gets there."""

import datetime
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from resourcepool.status.durations import duration

WIDEST = 60  # characters of one cell
GAP = "  "


def printable(text: str) -> str:
    """Return ``text`` with a ? for what is not printable; its lines stay lines, however they end."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text.replace("\r\n", "\n"))


def plain(value: object, most: int = WIDEST) -> str:
    """Return ``value`` as one line of at most ``most`` printable characters."""
    text = "".join(c if c.isprintable() else "?" for c in str(value))
    return text if len(text) <= most else f"{text[: most - 3]}..."


def table(head: Sequence[str], rows: Sequence[Sequence[object]], *, numbers: Sequence[str] = ()) -> list[str]:
    """Return lines in which the columns stand below each other; those named in ``numbers`` end flush."""
    cells = [[plain(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    flush = [name in numbers for name in head]
    return [GAP.join(padded(*one) for one in zip(row, widths, flush, strict=True)).rstrip() for row in cells]


def more(shown: int, total: int, option: str = "--limit") -> Iterator[str]:
    """Yield "N more", if there are."""
    if total > shown:
        yield _("%(count)s more; %(option)s shows more of them") % {
            "count": f"{total - shown:,}",
            "option": option,
        }


def moment(at: datetime.datetime | None, passed: float | None) -> str:
    """Return "2026-11-21 03:12:07+08:00 (12 min ago)", in the project's time zone.

    Args:
        passed: how many seconds ago that was, by the clock that ``at`` is of: not this host's, but the database's.
    """
    if at is None or passed is None:
        return _("not known")
    return _("%(at)s (%(ago)s ago)") % {"at": local(at), "ago": duration(passed)}


def local(at: datetime.datetime) -> str:
    """Return "2026-11-21 03:12:07+08:00", in the project's time zone; without it where the project has none."""
    return (timezone.localtime(at) if timezone.is_aware(at) else at).isoformat(" ", "seconds")


def ago(seconds: float | None) -> str:
    """Return "12 min ago", or "never"."""
    return _("never") if seconds is None else _("%s ago") % duration(seconds)


def as_text(value: Any) -> Any:
    """Make JSON of what JSON does not know: moments in ISO form, the rest as text."""
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _width(text: str) -> int:
    return sum(
        2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in text
    )


def padded(text: str, width: int, flush: bool = False) -> str:
    """Return ``text`` with blanks until it is ``width`` columns wide; with ``flush`` before it."""
    space = " " * (width - _width(text))
    return space + text if flush else text + space
