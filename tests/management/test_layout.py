"""Tables and words for people."""

import datetime
import io
from typing import Any

import pytest
from django.utils import timezone

from resourcepool.management.layout import Column, ago, console, moment, more, plain, rendered, table
from tests.management.test_base import Terminal


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("as it is", "as it is"),
        (17, "17"),
        ("a\x1b[31mb\nc\td\x00", "a?[31mb?c?d?"),
        ("\u202egnp.exe", "?gnp.exe"),  # would turn the line around
        ("x" * 100, "x" * 57 + "..."),
    ],
)
def test_text_is_one_printable_line(value: object, shown: str) -> None:
    assert plain(value) == shown


def shown(*rows: tuple[object, object], out: Any = None, **how: Any) -> list[str]:
    """The lines of a table of two columns."""
    columns = [Column("id", lambda row: row[0], **how), Column("name", lambda row: row[1])]
    return rendered(console(out or io.StringIO()), [table(rows, columns)]).split("\n")


def test_columns_stand_below_each_other_and_numbers_end_flush() -> None:
    assert shown((1, "a"), (1_000, "bcdef"), is_number=True) == ["  id  name", "   1  a", "1000  bcdef"]


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
    lines = rendered(console(Terminal(), no_color=True), [table([(1, long)], NAMED)]).split("\n")
    assert max(map(len, lines)) == 40
    assert "".join(line[3:] for line in lines[1:]).replace(" ", "").removeprefix("1") == long


def test_a_terminal_shows_colours_unless_it_is_told_not_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b" in shown((1, 2), out=Terminal())[0]
    assert "\x1b" not in rendered(console(Terminal(), no_color=True), [table([(1, 2)], NAMED)])
    assert "\x1b" in rendered(console(io.StringIO(), force_color=True), [table([(1, 2)], NAMED)])


NAMED = [Column("id", lambda row: row[0]), Column("name", lambda row: row[1])]


def test_what_is_not_listed_is_counted() -> None:
    assert list(more(20, 20)) == []
    assert list(more(20, 12_345)) == ["12,325 more; --limit shows more of them"]


def test_a_moment_is_shown_with_how_long_ago_it_was() -> None:
    at = datetime.datetime(2026, 11, 21, 3, 12, 7, tzinfo=datetime.UTC)
    assert moment(at, 300) == f"{at:%Y-%m-%d %H:%M:%S}+00:00 (5 min ago)"
    assert moment(at.replace(tzinfo=None), 300) == f"{at:%Y-%m-%d %H:%M:%S} (5 min ago)"
    with timezone.override("Asia/Shanghai"):
        assert "+08:00 (5 min ago)" in moment(at, 300)
    assert moment(None, None) == "not known"
    assert (ago(None), ago(7_200)) == ("never", "2 h ago")
