"""The list as a CSV file."""

import csv
import io
from typing import Any

import pytest
from django.test import Client

from resourcepool.models import Proxy
from resourcepool.status.export import escape_formulas
from tests.admin.conftest import lease
from tests.app.rows import new, several

LIST = "/admin/resourcepool/proxy/"

pytestmark = pytest.mark.django_db


def export(client: Client, rows: list[Proxy], query: str = "", **more: Any) -> list[dict[str, str]]:
    chosen = {"action": "export", "index": 0, "_selected_action": [row.pk for row in rows], **more}
    answer = client.post(LIST + query, chosen)
    assert answer["Content-Disposition"] == 'attachment; filename="proxy.csv"'
    return list(csv.DictReader(io.StringIO(answer.getvalue().decode())))


def test_selected_rows_are_exported_with_state_and_without_password(viewer: Client) -> None:
    row, _ = several(Proxy, 2, username="joe", password="c4nary", tags="eu")
    lease(row, "crawler")
    (line,) = export(viewer, [row])
    assert (line["host"], line["username"], line["tags"]) == (row.host, "joe", "eu")
    assert (line["state"], line["holder"], line["fence"]) == ("leased", "crawler", "1")
    assert "c4nary" not in str(line)
    assert "password" not in line


def test_all_matching_rows_are_exported_when_all_are_selected(viewer: Client) -> None:
    several(Proxy, 3, tags="eu")
    row = new(Proxy)
    assert len(export(viewer, [row], "?tag=eu", select_across="1")) == 3


def test_formulas_are_escaped(viewer: Client) -> None:
    row = new(Proxy, notes="=1+1", username="@SUM(A1)")
    lease(row, "+cmd|' /C calc'!A0")
    (line,) = export(viewer, [row])
    assert (line["notes"], line["username"], line["holder"]) == ("'=1+1", "'@SUM(A1)", "'+cmd|' /C calc'!A0")


CELLS = [
    ("=1", "'=1"),
    ("+1", "+1"),
    ("-1", "-1"),
    ("-1+cmd|' /C calc'!A0", "'-1+cmd|' /C calc'!A0"),
    ("+491701234567", "+491701234567"),
    ("+491701234567\n=1", "'+491701234567\n'=1"),
    ("-0.5", "-0.5"),
    ("+", "'+"),
    ("+1-2", "'+1-2"),
    ("x;=1", "x;'=1"),
    ("x\t=1", "x\t'=1"),
    ("x\n=1", "x\n'=1"),
    ("x\r\n=1", "x\r\n'=1"),
    ("x;;@a;y;+b", "x;;'@a;y;'+b"),
    ('x; "=1"', 'x;\' "=1"'),
    ("x;\uff1d1", "x;'\uff1d1"),
    ("x;+49170;-b", "x;+49170;'-b"),
    ("-1;-x", "'-1;'-x"),
    ("x;y", "x;y"),
    ("a-b;c=d", "a-b;c=d"),
    ("x,=1", "x,=1"),
    (" =1", "' =1"),
    ("@a", "'@a"),
    ("\t=1", "'\t'=1"),
    ("\r=1", "'\r'=1"),
    ("\ta", "'\ta"),
    ("a=1", "a=1"),
    ("", ""),
    (-1, -1),
    (None, None),
]


@pytest.mark.parametrize(("value", "cell"), CELLS)
def test_a_cell_is_escaped(value: Any, cell: Any) -> None:
    assert escape_formulas(value) == cell


@pytest.mark.parametrize(
    ("delimiter", "quotes"), [(",", True), (";", True), ("\t", True), (";", False), ("\t", False)]
)
def test_no_spreadsheet_finds_a_formula_however_it_splits_the_lines(
    viewer: Client, delimiter: str, quotes: bool
) -> None:
    bad = ["=1", ";=1", "a;=1", 'a"; "=1', "a\t=1", "a\n=1;=2", "a\r\n\t@b", ";;+x", "; -x", '";"=1', "-1;-x"]
    rows = [new(Proxy, notes=notes) for notes in bad]
    chosen = {"action": "export", "index": 0, "_selected_action": [row.pk for row in rows]}
    sent = viewer.post(LIST, chosen).getvalue().decode()
    sent = sent if quotes else sent.replace('"', "")  # spreadsheets that ignore quotes inside of cells
    cells = [cell for row in csv.reader(io.StringIO(sent, newline=""), delimiter=delimiter) for cell in row]
    assert [cell for cell in cells if cell.lstrip(' "').startswith(("=", "+", "-", "@"))] == []
