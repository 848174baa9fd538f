"""Output as text: the console, lines, times and durations.

Labels, holders and reasons may be hostile: control characters never reach a terminal, brackets are not markup.
"""

import datetime
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from resourcepool.status.times import duration, with_zone
from resourcepool.text import printable, shortened
from resourcepool.translation import gettext as _

UNLIMITED = 100_000  # columns, where the output is not a terminal
FOLD_AT = 80  # columns of a terminal


def console(out: Any, *, no_color: bool = False, force_color: bool = False) -> Console:
    """Return a console for the stream ``out``, with colours and a limited width only on a terminal."""
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
    """Return tables and lines as text. Long lines are not wrapped, so that they can be copied from a terminal."""
    with printer.capture() as captured:
        for part in parts:
            printer.print(part, soft_wrap=isinstance(part, str | Text))
    return "\n".join(line.rstrip() for line in captured.get().removesuffix("\n").split("\n"))


class Folded:
    """A line that a terminal shows folded, and a file whole."""

    def __init__(self, line: str, style: str = "") -> None:
        self.line = Text(line, style, overflow="fold")

    def __str__(self) -> str:
        return str(self.line)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(options.max_width, FOLD_AT) if console.is_terminal else options.max_width
        yield from console.render(Padding(self.line, (0, 0, 0, 2), expand=False), options.update(width=width))


def name_value_lines(pairs: Iterable[tuple[str, object]], width: int = 14, style: str = "") -> Table:
    """Return a table with a name and a value a line; long values wrap in their column."""
    lines = Table.grid(padding=(0, 1, 0, 0))
    for least in (1, width - 1, 1):
        lines.add_column(overflow="fold", min_width=least)
    for name, value in pairs:
        lines.add_row(" ", Text(name, style), Text(one_line(value, None)))
    return lines


def printable_lines(text: str) -> str:
    """Return ``text`` with "?" for unprintable characters; line ends are kept, CR LF becomes LF."""
    return "\n".join(map(printable, text.replace("\r\n", "\n").split("\n")))


def one_line(value: object, max_length: int | None = 60) -> str:
    """Return ``value`` as one line of at most ``max_length`` printable characters."""
    text = printable(value)
    return text if max_length is None else shortened(text, max_length)


def more_rows_note(shown: int, total: int) -> Iterator[str]:
    """Yield a line about the rows that are not shown, if any."""
    if total > shown:
        text = _("%(count)s more; use %(option)s to show more")
        yield text % {"count": f"{total - shown:,}", "option": "--limit"}


def due(left: float) -> str:
    """Return "in 5 min" or "due for 5 min"; ``left``: the seconds until then."""
    return _("in %s") % duration(left) if left > 0 else _("due for %s") % duration(-left)


def or_dash(value: object, of: Callable[[Any], object] = str) -> object:
    """Return ``of(value)``, or "-" for None and ""."""
    return "-" if value is None or value == "" else of(value)


def as_text(value: Any) -> Any:
    """Return a value as text for JSON: a datetime in ISO format, anything else by ``str``."""
    return with_zone(value).isoformat() if isinstance(value, datetime.datetime) else str(value)
