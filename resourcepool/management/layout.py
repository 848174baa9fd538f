"""Readings as text: the console, lines, moments and durations.

Labels, holders and reasons may be hostile: their control characters do not reach a terminal, and their brackets are no
markup.
"""

import datetime
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from resourcepool.status.snapshots import duration, with_zone

UNLIMITED = 100_000  # columns where no terminal limits them


def console(out: Any, *, no_color: bool = False, force_color: bool = False) -> Console:
    """Return a console for the stream ``out``; it has colours and a limited width only if that is a terminal."""
    is_terminal = out.isatty()
    has_style = (is_terminal or force_color) and not no_color
    return Console(
        file=out,
        force_terminal=is_terminal or force_color,
        color_system="auto" if has_style else None,
        width=None if is_terminal else UNLIMITED,
        markup=False,
        emoji=False,
        highlight=False,
    )


def render_text(printer: Console, parts: Iterable[RenderableType]) -> str:
    """Return tables and lines as text. Long lines are left to the terminal to wrap, so that they can be copied."""
    with printer.capture() as captured:
        for part in parts:
            printer.print(part, soft_wrap=isinstance(part, str | Text))
    return "\n".join(line.rstrip() for line in captured.get().removesuffix("\n").split("\n"))


def name_value_lines(pairs: Iterable[tuple[str, object]], width: int = 14, style: str = "") -> Table:
    """Return lines of a name and a value; long values wrap below themselves."""
    found = Table.grid(padding=(0, 1, 0, 0))
    for least in (1, width - 1, 1):
        found.add_column(overflow="fold", min_width=least)
    for name, value in pairs:
        found.add_row(" ", Text(name, style), Text(one_line(value, None)))
    return found


def printable(text: str) -> str:
    """Return ``text`` with a ? for each unprintable character; new lines are kept, CR LF becomes LF."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text.replace("\r\n", "\n"))


def one_line(value: object, most: int | None = 60) -> str:
    """Return ``value`` as one line of at most ``most`` printable characters."""
    text = "".join(c if c.isprintable() else "?" for c in str(value))
    return text if most is None or len(text) <= most else f"{text[: most - 3]}..."


def more_rows_note(shown: int, total: int) -> Iterator[str]:
    """Yield "N more", if there are."""
    if total > shown:
        text = _("%(count)s more; %(option)s shows more of them")
        yield text % {"count": f"{total - shown:,}", "option": "--limit"}


def timestamp_with_age(at: datetime.datetime | None, passed: float | None) -> str:
    """Return "2026-11-21 03:12:07+08:00 (12 min ago)", in the project's time zone.

    Args:
        passed: how many seconds ago that was, by the clock of the database.
    """
    if at is None or passed is None:
        return _("not known")
    return _("%(at)s (%(ago)s ago)") % {"at": local_time(at), "ago": duration(passed)}


def local_time(at: datetime.datetime) -> str:
    """Return "2026-11-21 03:12:07+08:00", in the project's time zone."""
    return timezone.localtime(with_zone(at)).isoformat(" ", "seconds")


def ago(seconds: float | None) -> str:
    """Return "12 min ago", or "never"."""
    return _("never") if seconds is None else _("%s ago") % duration(seconds)


def or_dash(value: object, of: Callable[[Any], object] = str) -> object:
    """Return ``of(value)``, or "-" for None and ""."""
    return "-" if value is None or value == "" else of(value)


def as_text(value: Any) -> Any:
    """Return a value as JSON text: a moment in ISO form, anything else as ``str`` has it."""
    return with_zone(value).isoformat() if isinstance(value, datetime.datetime) else str(value)
