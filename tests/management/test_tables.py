"""Tables on terminals of any width."""

import io
import random
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from resourcepool.management.commands.resourcepool_status import LEASE_COLUMNS
from resourcepool.management.layout import FittedTable, console, render_text
from resourcepool.management.queues_report import MOVES, SERVERS
from resourcepool.status.queues.system import SYSTEM
from resourcepool.status.registry import named_systems
from resourcepool.status.system import Figure, Unit, count, text
from resourcepool.status.work.pages import FIGURES
from tests.management.test_base import Terminal


def shown(
    *rows: tuple[object, object], out: Any = None, unit: Unit = Unit.TEXT, widest: int | None = None
) -> list[str]:
    """The lines of a table of two columns."""
    figures = [Figure(unit, "id", lambda row: row[0], widest=widest), NAMED[1]]
    return render_text(console(out or io.StringIO()), [FittedTable(rows, figures)]).split("\n")


def test_columns_stand_below_each_other_and_numbers_end_flush() -> None:
    assert shown((1, "a"), (1_000, "bcdef"), unit=Unit.NUMBER) == ["  id  name", "   1  a", "1000  bcdef"]


def test_wide_characters_take_two_places() -> None:
    assert shown(("代理", 1), ("abcd", 2)) == ["id    name", "代理  1", "abcd  2"]


def test_what_others_have_written_is_no_markup_and_steers_nothing() -> None:
    assert shown(("[red]x[/red]", ":boom: [/]"), ("\x1b[31m", "a\nb"))[1:] == [
        "[red]x[/red]  :boom: [/]",
        "?[31m         a?b",
    ]


def test_a_pipe_gets_whole_cells_and_a_terminal_all_of_them_in_its_width(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("FORCE_COLOR", "1")
    long = "".join(chr(ord("a") + number % 26) for number in range(500))
    assert shown((1, long))[1] == f"1   {long}"
    lines = render_text(console(Terminal(), no_color=True), [FittedTable([(1, long)], NAMED)]).split("\n")
    assert max(map(len, lines)) == 40
    assert "".join(line[3:] for line in lines[1:]).replace(" ", "").removeprefix("1") == long


def test_a_terminal_shows_colours_unless_it_is_told_not_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b" in shown((1, 2), out=Terminal())[0]
    assert "\x1b" not in render_text(console(Terminal(), no_color=True), [FittedTable([(1, 2)], NAMED)])
    assert "\x1b" in render_text(console(io.StringIO(), force_color=True), [FittedTable([(1, 2)], NAMED)])


NAMED = [text("id", lambda row: row[0]), text("name", lambda row: row[1])]


class Stream(NamedTuple):
    name: str
    leader: str
    done: int = 10_000
    left: int = 9_999


STREAM = (
    text("stream", "name"),
    text("leading process", "leader"),
    count("done/min", "done"),
    count("dead-letter", "left"),
)


def on_terminal(
    monkeypatch: pytest.MonkeyPatch, width: int, rows: list[Any], columns: Any = STREAM
) -> list[str]:
    """The lines of a table on a terminal of this width."""
    monkeypatch.setenv("COLUMNS", str(width))
    lines = render_text(console(Terminal(), no_color=True), [FittedTable(rows, columns)]).split("\n")
    assert max(map(len, lines)) <= width
    return lines


def test_headings_that_do_not_fit_break_at_spaces_slashes_and_hyphens(monkeypatch: pytest.MonkeyPatch) -> None:
    assert on_terminal(monkeypatch, 60, [Stream("oracle", "web-3")]) == [
        "stream  leading process  done/min  dead-letter",
        "oracle  web-3              10,000        9,999",
    ]
    assert on_terminal(monkeypatch, 40, [Stream("oracle", "web-3")]) == [
        "        leading   done/   dead-",
        "stream  process     min  letter",
        "oracle  web-3    10,000   9,999",
    ]


def test_a_long_name_goes_on_below_itself_while_there_is_room_to_read_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert on_terminal(monkeypatch, 50, [Stream("orders-of-the-northern-region", "web-3")]) == [
        "                           leading   done/   dead-",
        "stream                     process     min  letter",
        "orders-of-the-northern-re  web-3    10,000   9,999",
        "gion",
    ]


def test_where_a_table_does_not_fit_each_row_is_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [Stream("oracle", "-", 0, 0), Stream("orders-of-the-northern-region", "web-3 pid 4711")]
    assert on_terminal(monkeypatch, 40, rows) == [
        "stream: oracle",
        "  done/min: 0; dead-letter: 0",
        "stream: orders-of-the-northern-region",
        "  leading process: web-3 pid 4711;",
        "  done/min: 10,000; dead-letter: 9,999",
    ]
    assert on_terminal(monkeypatch, 30, [Stream("a" * 30, "b" * 30)]) == [
        "stream:",
        "a" * 30,
        "  leading process:",
        "  " + "b" * 28,
        "  bb;",
        "  done/min: 10,000;",
        "  dead-letter: 9,999",
    ]


NUMBERS = (Unit.COUNT, Unit.NUMBER)


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize(
    "figures",
    [
        *FIGURES.values(),
        *(system.figures for system in named_systems().values()),
        SYSTEM.figures,
        SERVERS,
        MOVES,
        LEASE_COLUMNS,
    ],
)
def test_no_command_breaks_a_number_or_a_word_of_a_heading(
    monkeypatch: pytest.MonkeyPatch, figures: Any, width: int
) -> None:
    numbers = random.Random(width)
    columns = [one for one in figures if one.label]
    heads = [str(one.label) for one in columns]
    for longest in (3, 15, 80):
        numbers_of = [f"{numbers.randrange(10**9):,}" for _ in columns]
        cells = [
            number if one.unit in NUMBERS else "x" * numbers.randint(1, longest)
            for one, number in zip(columns, numbers_of, strict=True)
        ]
        units = [Unit.NUMBER if one.unit in NUMBERS else Unit.TEXT for one in columns]
        same = [
            replace(one, unit=unit, value=lambda _, cell=cell: cell)
            for one, unit, cell in zip(columns, units, cells, strict=True)
        ]
        words = (
            " ".join(on_terminal(monkeypatch, width, [None], same)).replace(":", "").replace(";", "").split()
        )
        for one, cell, heading in zip(columns, cells, heads, strict=True):
            assert one.unit not in NUMBERS or cell in words
            for word in heading.replace("/", "/ ").replace("-", "- ").split():
                assert any(word in found for found in words), (heading, words)
