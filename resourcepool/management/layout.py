"""Output as text: the console, lines, times, and tables declared by their columns, fitted to the terminal.

Labels, holders and reasons may be hostile: control characters never reach a terminal, brackets are not markup.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from resourcepool.events import localized
from resourcepool.status.system import Figure, Unit
from resourcepool.status.times import ago, duration
from resourcepool.text import printable, shortened
from resourcepool.translation import gettext as _

GAP = 2  # between columns
EMPTY = ("", "-")
MIN_TEXT_WIDTH = 16  # of a column whose texts are wider
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
        lines.add_row(" ", Text(one_line(name, None), style), Text(one_line(value, None)))
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


_PIECES = re.compile(r"[^\s/-]+[/-]?\s*|\S\s*")  # of a heading: it wraps at spaces and after "/" and "-"


WRITE: Mapping[Unit, Callable[[Any], object]] = {
    Unit.COUNT: lambda count: f"{count:,}",
    Unit.SECONDS: lambda seconds: or_dash(seconds, duration),
    Unit.AGO: ago,
    Unit.DUE: lambda seconds: or_dash(seconds, due),
    Unit.SENTENCE: lambda sentence: or_dash(one_line(localized(sentence))),
}


def _cell(figure: Figure, row: Any) -> str:
    write: Callable[[Any], object] = WRITE.get(figure.unit, or_dash)
    return one_line(write(figure.of(row)), None)


def _is_number(figure: Figure) -> bool:
    return figure.unit in (Unit.COUNT, Unit.NUMBER)


class FittedTable:
    """A table of rows for a terminal of any width; numbers and words of headings never break. Nothing is cut off.

    If it is too wide, headings and texts wrap; if it still does not fit, each row becomes a block of lines, without
    the fields that are empty.
    """

    def __init__(self, rows: Iterable[Any], figures: Iterable[Figure]) -> None:
        self.columns = [figure for figure in figures if figure.label]
        self.headings = [one_line(column.label) for column in self.columns]
        self.cells = [[_cell(column, row) for column in self.columns] for row in rows]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        cells = [
            min(max((cell_len(row[at]) for row in self.cells), default=0), column.widest or width)
            for at, column in enumerate(self.columns)
        ]
        wanted = [max(cell, cell_len(heading)) for cell, heading in zip(cells, self.headings, strict=True)]
        if sum(wanted) + GAP * len(wanted) - GAP <= width:
            yield self._table(wanted)
            return
        words = [max(map(cell_len, _PIECES.findall(heading)), default=0) for heading in self.headings]
        least = [
            max(word, cell if _is_number(column) else min(cell, MIN_TEXT_WIDTH))
            for word, cell, column in zip(words, cells, self.columns, strict=True)
        ]
        if sum(least) + GAP * len(least) - GAP > width:
            yield from self._blocks(width)
        else:
            yield self._table([max(pair) for pair in zip(words, cells, strict=True)])

    def _table(self, widths: Sequence[int]) -> Table:
        """Return the table, with headings of at most these widths."""
        table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="bold")
        for column, heading, width in zip(self.columns, self.headings, widths, strict=True):
            table.add_column(
                "\n".join(_filled(_PIECES.findall(heading), width)),
                justify="right" if _is_number(column) else "left",
                overflow="fold",
                no_wrap=_is_number(column),
                max_width=column.widest,
            )
        for row in self.cells:
            table.add_row(*map(Text, row))
        return table

    def _blocks(self, width: int) -> Iterator[RenderableType]:
        """Yield each row as its first cell, and the other cells, with their headings, below it."""
        for row in self.cells:
            named = zip(self.headings, row, strict=True)
            first, *others = [f"{heading}: {cell}" for heading, cell in named if cell not in EMPTY] or [""]
            yield Text(first, "bold", overflow="fold")
            facts = [f"{cell}; " for cell in others[:-1]] + others[-1:]
            for line in _filled(facts, width - GAP):
                yield Padding(Text(line, overflow="fold"), (0, 0, 0, GAP))


def _filled(pieces: Iterable[str], width: int) -> list[str]:
    """Return lines filled with ``pieces`` up to ``width``; a piece that is wider has a line alone."""
    lines = [""]
    for piece in pieces:
        if lines[-1] and cell_len(lines[-1] + piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines]
