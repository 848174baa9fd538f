"""Every operation of the admin, from a shell."""

from dataclasses import replace
from typing import Any

import pytest

from resourcepool.models import Proxy
from resourcepool.operations import OPERATIONS
from resourcepool.operations.operation import Operation
from resourcepool.resources.state import Status
from tests.app.rows import change, columns, hold, new, several
from tests.management.command_runner import run

pytestmark = pytest.mark.usefixtures("history")

ASKED = {"reason": ["--reason", "x"], "duration": ["--for", "2h"], "name": ["--name", "Ann"]}


def words_of(name: str) -> list[str]:
    return [word for field in OPERATIONS[name].fields for word in ASKED[field.name]]


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_dry_run_changes_nothing_and_needs_no_answers(name: str, settings: Any) -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": {"resourcepool.Proxy": {"url": "http://x/"}}}
    free, held = several(Proxy, 2)
    hold(held)
    change(free, strikes=1)
    before = [columns(row) for row in (free, held)]
    listed = run("operate", name, "proxy", "--all", "--dry-run", "--json")
    assert listed.json["changed"] == 0
    assert listed.json["found"] == len(listed.json["resources"])
    assert [columns(row) for row in (free, held)] == before


@pytest.mark.parametrize(("changed", "said"), [(1, "1 proxy was quarantined.\n"), (0, "")])
def test_what_has_changed_meanwhile_is_said_to_be_skipped(
    changed: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = several(Proxy, 2)
    overtaken = replace(OPERATIONS["quarantine"], do=lambda *_, **__: changed)
    monkeypatch.setitem(OPERATIONS, "quarantine", overtaken)
    done = run("operate", "quarantine", "proxy", *(row.pk for row in rows), *words_of("quarantine"))
    left = f"{2 - changed} skipped: already out of service, or no longer there."
    assert done.out.endswith(f"{rows[1]}  -\n{said}")
    assert left in done.err
    assert done.code == (0 if changed else 1)


def test_nothing_to_do_is_said_also_by_an_operation_that_has_no_words_of_its_own_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reboot = replace(OPERATIONS["revoke"], name="reboot", skipped_message=Operation.skipped_message)
    monkeypatch.setitem(OPERATIONS, "revoke", reboot)
    assert "nothing to do: 1 skipped." in run("operate", "revoke", "proxy", new(Proxy).pk, "--reason", "x").err


def test_by_tag_only_what_is_in_service_is_drained() -> None:
    away = new(Proxy, in_service=False, status=Status.RESERVED, reason="Ann: x", tags="eu")
    here = new(Proxy, tags="eu")
    done = run("operate", "drain", "proxy", "--tag", "eu", "--reason", "x")
    assert done.out.endswith(f"Proxy {here} was taken out of service.\n")
    assert [columns(row)["status"] for row in (away, here)] == [Status.RESERVED, Status.OUT_OF_SERVICE]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["revoke", "proxy", "--reason", "x"], "select resources by"),
        (["revoke", "proxy", "{pk}"], "--reason: required, one line of 1 to 200 characters"),
        (["quarantine", "proxy", "{pk}", "--reason", "x"], "--for: required, e.g. 90s, 15m, 2h or 7d"),
        (["quarantine", "proxy", "--tag", "ue", "--reason", "x", "--for", "2h"], "no such resource"),
        (["quarantine", "proxy", "{pk}", "--reason", "x", "--for", "99d"], "--for="),
        (["revoke", "proxy", "{pk}", "--reason", "x", "--for", "2h"], "--for cannot be combined with revoke"),
        (["reserve", "proxy", "{pk}", "--reason", "x" * 199, "--name", "Ann"], "reason="),
        (["check", "proxy", "{pk}"], "resourcepool.Proxy does not support check"),
        (["explode", "proxy", "{pk}"], "invalid choice: 'explode'"),
        (["revoke", "nope", "{pk}", "--reason", "x"], "pool='nope' is not allowed"),
        (["revoke", "proxy", "987654", "--reason", "x"], "no resourcepool.Proxy has this id"),
        (["revoke", "proxy", "{pk}", "--reason", "x"], "nothing to do: 1 skipped: no longer held"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(words: list[str], said: str) -> None:
    row = new(Proxy)
    before = columns(row)
    refused = run("operate", *(word.format(pk=row.pk) for word in words))
    assert said in refused.err
    assert refused.code
    assert columns(row) == before
