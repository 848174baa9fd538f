"""Imports of rows of any resource model: what happens with each row, without the admin."""

import io
import uuid
from typing import Any

import pytest

from resourcepool.admin.csv_export import csv_response
from resourcepool.exceptions import ImportRefused
from resourcepool.resources.import_result import CHANGED, NEW, SET, UNCHANGED, WRONG, BadLines, ImportResult
from resourcepool.resources.importer import Importer
from resourcepool.status.export import resource_columns, resource_records
from tests.app.models import Device, Team
from tests.app.rows import columns, hold, new

pytestmark = pytest.mark.django_db
SECRET = "c4nary-s3cret"


def imported(text: str, **options: Any) -> ImportResult:
    options = {"update": True, "skip_bad": True, **options}
    return Importer(Device).run("d.csv", stream=io.BytesIO(text.encode()), **options)


def planned(text: str, **options: Any) -> ImportResult:
    return imported(text, dry_run=True, **options)


def test_each_row_is_new_changed_unchanged_or_wrong() -> None:
    old, same = new(Device, name="old", slots=1), new(Device, name="same", slots=2)
    text = (
        f"id,name,slots\n{old.pk},renamed,1\n{same.pk},same,2\n,fresh,3\n{uuid.uuid4()},own key,4\n,bad,many\n"
    )
    plan = planned(text)
    assert [(row.line, row.what) for row in plan.rows] == [
        (2, CHANGED),
        (3, UNCHANGED),
        (4, NEW),
        (5, NEW),
        (6, WRONG),
    ]
    assert plan.rows[0].changes == (("name", "old", "renamed"),)
    assert plan.rows[4].note == "slots: not an allowed value"
    assert Device.objects.count() == 2, "a plan changes nothing"
    imported(text)
    assert set(Device.objects.values_list("name", "slots")) == {
        ("renamed", 1),
        ("same", 2),
        ("fresh", 3),
        ("own key", 4),
    }


def test_leases_are_neither_imported_nor_touched() -> None:
    row = new(Device, name="old")
    hold(row, holder="web1")
    imported(f"id,name,holder,fence,in_service\n{row.pk},new,me,1,False\n")
    assert (columns(row)["name"], columns(row)["holder"]) == ("new", "web1")


def test_secrets_are_stored_and_never_shown() -> None:
    row = new(Device, name="a", pin=SECRET)
    result = imported(f"id,name,pin\n{row.pk},a,{SECRET}2\n,b,{SECRET}3\n")
    assert SECRET not in str(result.rows)
    assert result.rows[0].changes == (("pin", SET, SET),)
    assert {one.name: one.pin for one in Device.objects.all()} == {"a": f"{SECRET}2", "b": f"{SECRET}3"}
    assert planned(f"id,pin\n{row.pk},\n").rows[0].what == UNCHANGED, "an empty cell keeps the secret"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("name,kind\na,robot\n", "kind: not an allowed value"),
        ("name,traits\na,{\n", "traits: not an allowed value"),
        ("name,owner_id\na,99999\n", "owner: not an allowed value"),
        ("name,is_rooted\na,perhaps\n", "is_rooted: not an allowed value"),
        ("name\na,b\n", "columns: 2 cells, but the header has 1 (put cells that contain ',' in quotes)"),
        (f"name\n{'x' * 51}\n", "name: not an allowed value"),
    ],
)
def test_what_is_wrong_is_said_without_the_value(text: str, why: str) -> None:
    with pytest.raises(BadLines) as refused:
        imported(text, skip_bad=False)
    assert str(refused.value.bad[0]) == f"line 2: {why}"
    assert not Device.objects.exists()


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "name,name\na,b\n", 'name\n"a\n', "\0"])
def test_what_is_no_csv_of_this_model_is_refused(text: str) -> None:
    with pytest.raises(ImportRefused):
        planned(text)


def test_an_exported_file_changes_nothing() -> None:
    new(
        Device,
        name="=1+1;",
        traits={"os": ["a"]},
        owner=Team.objects.create(name="red"),
        bought_on="2026-11-21",
    )
    hold(new(Device, name="b"))
    answer = csv_response(
        "d", resource_columns(Device, to_import=False), resource_records(Device.objects.all())
    )
    text = b"".join(answer.streaming_content).decode()  # type: ignore[arg-type]
    rows = planned(text.replace("'=1+1", "=1+1")).rows  # the export keeps spreadsheets from running it
    assert [(row.what, row.changes) for row in rows] == [(UNCHANGED, ())] * 2


def test_foreign_keys_dates_and_empty_cells() -> None:
    team = Team.objects.create(name="red")
    imported(f"name;owner_id;bought_on;slots;traits\na;{team.pk};2026-11-21;;\n")
    row = Device.objects.get()
    assert (row.owner, str(row.bought_on), row.slots, row.traits) == (team, "2026-11-21", 1, {})


def test_sync_retires_what_is_not_in_the_file_and_needs_a_column_that_identifies_rows() -> None:
    kept, gone = new(Device, name="kept"), new(Device, name="gone")
    assert imported(f"id,name\n{kept.pk},kept\n", sync=True).retired == 1
    assert [columns(row)["status"] for row in (kept, gone)] == ["in_service", "retired"]
    with pytest.raises(ImportRefused, match="sync needs a column that identifies a row"):
        imported("name\nkept\n", sync=True)


def test_nothing_is_retired_if_a_row_is_wrong() -> None:
    gone = new(Device, name="gone")
    result = imported("id,name,kind\n,fresh,phone\n,bad,robot\n", sync=True)
    assert (result.new, result.retired, result.bad_count) == (1, 0, 1)
    assert columns(gone)["in_service"]
