"""The worked example of docs/how-to/own-resource.md: an operation declared once appears everywhere."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from resourcepool.models import Proxy
from resourcepool.operations import OPERATIONS
from tests.admin.conftest import sign_in, text
from tests.app.rows import change, columns, new, several
from tests.management.command_runner import run
from tests.spawned import ROOT

LIST = "/admin/resourcepool/proxy/"
NAME = "forgive"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    """Run the example."""
    text = (Path(ROOT) / "docs/how-to/own-resource.md").read_text().split("An operation of your own")[1]
    exec(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0], {})
    yield
    del OPERATIONS[NAME]


def bad() -> Any:
    row = new(Proxy)
    change(row, strikes=3)
    return row


def test_it_is_an_action_of_the_list() -> None:
    row, other = bad(), new(Proxy)
    client = sign_in("operator")
    assert f'<option value="{NAME}">' in text(client.get(LIST))
    assert f'<option value="{NAME}">' not in text(client.get(f"{LIST}?_popup=1"))
    chosen = {"action": NAME, "_selected_action": [row.pk, other.pk]}
    asked = text(client.post(LIST, {**chosen, "index": 0}))
    assert 'name="ticket"' in asked
    assert columns(row)["strikes"] == 3
    said = text(client.post(LIST, {**chosen, "confirmed": "yes", "ticket": "T-1"}, follow=True))
    assert "1 proxy was forgiven." in said
    assert "1 had no strikes." in said
    assert columns(row)["strikes"] == 0
    assert LogEntry.objects.get().object_id == str(row.pk)


def test_it_is_on_the_page() -> None:
    row = bad()
    client = sign_in("operator")
    assert f'id="operate-{NAME}"' in text(client.get(f"{LIST}{row.pk}/change/"))
    page = f"{LIST}{row.pk}/operate/{NAME}/"
    assert "one line of at most 20" in text(client.post(page, {"confirmed": "yes", "ticket": "a\x1bb"}))
    assert columns(row)["strikes"] == 3
    assert f"Proxy {row} was forgiven." in text(
        client.post(page, {"confirmed": "yes", "ticket": "T-1"}, follow=True)
    )


@pytest.mark.parametrize("role", ["viewer", "administrator"])
def test_it_is_for_those_who_may(role: str) -> None:
    row = bad()
    client: Client = sign_in(role)
    entered = {"confirmed": "yes", "ticket": "T-1"}
    assert f'value="{NAME}"' not in text(client.get(LIST))
    assert f'id="operate-{NAME}"' not in text(client.get(f"{LIST}{row.pk}/change/"))
    assert client.post(f"{LIST}{row.pk}/operate/{NAME}/", entered).status_code == 403
    client.post(LIST, {"action": NAME, "_selected_action": [row.pk], **entered})
    assert columns(row)["strikes"] == 3


def test_it_is_a_word_of_the_command() -> None:
    row, other = bad(), bad()
    refused = run("operate", NAME, "proxy", row.pk)
    assert (refused.err[:18], refused.code) == ("--ticket: required", 1)
    done = run("operate", NAME, "proxy", row.pk, "--ticket", "T-1")
    assert done.out.endswith(f"Proxy {row} was forgiven.\n")
    assert [columns(one)["strikes"] for one in (row, other)] == [0, 3]


def test_what_it_changes_nothing_about_is_refused() -> None:
    again = run("operate", NAME, "proxy", *(row.pk for row in several(Proxy, 2)), "--ticket", "T-1")
    assert (again.err, again.code) == ("nothing to do: 2 had no strikes.\n", 1)
