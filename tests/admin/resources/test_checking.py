"""*Check now* in the admin: a few resources at a time, while the page waits."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connections
from django.urls import resolve

from resourcepool.documentation import documented
from resourcepool.events import sentence_for
from resourcepool.models import Proxy
from resourcepool.operations import resources
from resourcepool.resources.state import Status, Verdict
from resourcepool.signals import RowEvent, resource_checked, resource_quarantined
from tests.admin.conftest import ROLES, lease, sign_in, text
from tests.app.rows import columns, new, several
from tests.committed import transactional_db
from tests.eventually import eventually
from tests.health_checks.conftest import scripted
from tests.health_checks.scripted_checker import BAD, ScriptedChecker

__all__ = ["scripted", "transactional_db"]

LIST = "/admin/resourcepool/proxy/"


@pytest.fixture(autouse=True)
def _nobody_stays(transactional_db: None) -> Iterator[None]:
    yield
    User.objects.all().delete()


def check(role: str, rows: list[Proxy]) -> str:
    chosen = {"action": "check", "_selected_action": [row.pk for row in rows], "confirmed": "yes", "reason": ""}
    said: str = sign_in(role).post(LIST, chosen, follow=True).content.decode()
    return said


def test_bad_resources_are_quarantined_and_held_ones_skipped(scripted: type[ScriptedChecker]) -> None:
    good, bad, held = several(Proxy, 3)
    lease(held)
    before = columns(held)
    scripted.finds = {bad.pk: BAD}
    page = check("operator", [good, bad, held])
    assert "2 proxies were checked" in page
    assert "1 skipped" in page
    assert columns(good)["verdict"] == Verdict.OK
    assert (columns(bad)["verdict"], columns(bad)["status"]) == (Verdict.BAD, Status.QUARANTINED)
    assert columns(held) == before
    logged = LogEntry.objects.filter(change_message__startswith="Check now").values_list("object_id", flat=True)
    assert set(logged) == {str(good.pk), str(bad.pk)}


def test_a_resource_quarantined_by_a_check_returns_to_service(scripted: type[ScriptedChecker]) -> None:
    row = new(Proxy)
    Proxy.objects.filter(pk=row.pk).quarantine(sentence_for("check", why="slow"), 3_600)
    assert f"Proxy {row} was checked" in check("operator", [row])
    assert columns(row)["status"] == Status.IN_SERVICE


@pytest.mark.parametrize("is_bad", [True, False])
def test_a_resource_quarantined_by_an_operator_stays_quarantined(
    scripted: type[ScriptedChecker], is_bad: bool
) -> None:
    row = new(Proxy)
    Proxy.objects.filter(pk=row.pk).quarantine("vendor has it, ticket 4711", 3_600)
    before = columns(row)
    scripted.finds = {row.pk: BAD} if is_bad else {}
    assert "in a quarantine not set by a check" in check("operator", [row])
    assert columns(row) == before


def test_the_history_names_the_operator(scripted: type[ScriptedChecker]) -> None:
    row = new(Proxy)
    scripted.finds = {row.pk: BAD}
    heard: list[RowEvent] = []

    def note(event: RowEvent, **_: Any) -> None:
        heard.append(event)

    for signal in (resource_checked, resource_quarantined):
        signal.connect(note, weak=False, dispatch_uid="test")
    try:
        check("operator", [row])
    finally:
        for signal in (resource_checked, resource_quarantined):
            signal.disconnect(dispatch_uid="test")
    assert [event.actor for event in heard] == ["operator", "operator"]


def test_no_reason_is_asked_because_the_result_is_the_reason(scripted: type[ScriptedChecker]) -> None:
    page = sign_in("operator").get(f"{LIST}{new(Proxy).pk}/operate/check/").content.decode()
    assert 'id="confirm"' in page
    assert 'name="reason"' not in page


def test_slow_checks_are_reported_and_no_lease_remains(
    scripted: type[ScriptedChecker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "TIME_LIMIT", -1.0)
    rows = several(Proxy, 3)
    assert "Not all checks finished" in check("operator", rows)
    assert not Proxy.objects.held().exists()


def test_without_settings_the_list_does_not_offer_it_and_the_page_names_the_setting() -> None:
    row, client = new(Proxy), sign_in("operator")
    assert 'value="check"' not in text(client.get(LIST))
    chosen = {"action": "check", "_selected_action": [row.pk], "confirmed": "yes", "reason": ""}
    assert "No action selected." in text(client.post(LIST, chosen, follow=True))
    page = f"{LIST}{row.pk}/operate/check/"
    said = text(client.post(page, {"confirmed": "yes", "reason": ""}, follow=True))
    assert f"no checker is configured; see {documented('how-to/health-checks')}" in said
    assert "None is not allowed" not in said
    assert columns(row)["checked_at"] is None


def test_a_checker_that_hangs_does_not_hang_the_page(
    scripted: type[ScriptedChecker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "TIME_LIMIT", 1.0)
    monkeypatch.setattr(resources, "GRACE", 0.0)
    row, answered = new(Proxy), threading.Event()
    scripted.meanwhile = staticmethod(lambda _: answered.wait(600))
    page = check("operator", [row])
    assert "Not all checks finished" in page
    assert "1 not changed" in page
    assert "skipped" not in page
    assert Proxy.objects.held().exists(), "it is still being looked at"
    answered.set()
    eventually(lambda: not Proxy.objects.held().exists())


def test_it_works_where_every_request_is_a_transaction(
    scripted: type[ScriptedChecker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)
    row = new(Proxy)
    assert f"Proxy {row} was checked" in check("operator", [row])
    assert columns(row)["checked_at"] is not None
    for page in (LIST, f"{LIST}{row.pk}/operate/check/"):
        assert set(connections) <= resolve(page).func._non_atomic_requests


@pytest.mark.parametrize("role", ["anonymous", *ROLES, "superuser"])
def test_only_operators_may_check(scripted: type[ScriptedChecker], role: str) -> None:
    row: Any = new(Proxy)
    check(role, [row])
    assert (columns(row)["checked_at"] is not None) is (role in {"operator", "superuser"})
