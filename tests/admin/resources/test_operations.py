"""Operations on resources in the admin: confirmation, result, messages and log."""

import datetime
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import InterfaceError, OperationalError
from django.test import Client, override_settings

from resourcepool.admin.resources import operations
from resourcepool.exceptions import DatabaseUnavailable, LeaseLost
from resourcepool.history.recorder import recorder
from resourcepool.models import Event, Proxy
from resourcepool.operations import OPERATIONS
from resourcepool.signals import EventKind
from tests.admin.conftest import lease, sign_in, text
from tests.app.rows import busy_for, columns, new, several

LIST = "/admin/resourcepool/proxy/"
OPERATIONS_AS_THEY_ARE = dict(OPERATIONS)

pytestmark = pytest.mark.django_db


def ask(client: Client, name: str, rows: list[Proxy], **more: Any) -> Any:
    chosen = {"action": name, "index": 0, "_selected_action": [row.pk for row in rows], **more}
    return client.post(LIST, chosen)


def do(client: Client, operation: str, rows: list[Proxy], **entered: Any) -> str:
    chosen = {"action": operation, "_selected_action": [row.pk for row in rows], "confirmed": "yes"}
    return text(client.post(LIST, {**chosen, "reason": "stuck", **entered}, follow=True))


def url(row: Proxy, name: str) -> str:
    return f"{LIST}{row.pk}/operate/{name}/"


def test_nothing_happens_before_it_is_confirmed(operator: Client) -> None:
    rows = several(Proxy, 2)
    lease(rows[0], "joe <b>")
    before = [columns(row) for row in rows]
    page = text(ask(operator, "revoke", rows))
    assert "1 of them held" in page
    assert "joe &lt;b&gt;" in page
    assert [columns(row) for row in rows] == before


def test_a_lease_that_began_after_the_confirmation_page_continues(operator: Client, proxy: Proxy) -> None:
    lease(proxy, "the one who is stuck")
    seen = f"{proxy.pk}:{proxy.fence}"
    assert seen in text(operator.get(url(proxy, "revoke")))
    lease(proxy, "the next one")
    page = text(
        operator.post(url(proxy, "revoke"), {"reason": "x", "confirmed": "yes", "grant": seen}, follow=True)
    )
    assert "or held by someone else" in page
    assert columns(proxy)["holder"] == "the next one"
    assert busy_for(proxy) > 0


WRONG = [  # others: test_forms, and tests/operations
    ("revoke", {"reason": "  "}),
    ("revoke", {"reason": "x" * 201}),
    ("drain", {"reason": "a\x1bb"}),
    ("quarantine", {"reason": "r", "duration": "9999-12-31T23:59"}),
    ("reserve", {"reason": "r"}),
]


@pytest.mark.parametrize(("name", "entered"), WRONG)
def test_an_invalid_form_is_shown_again_and_changes_nothing(
    operator: Client, proxy: Proxy, name: str, entered: dict[str, str]
) -> None:
    lease(proxy)
    before = columns(proxy)
    page = text(operator.post(url(proxy, name), {**entered, "confirmed": "yes", "grant": f"{proxy.pk}:1"}))
    assert "errorlist" in page
    assert f'value="{proxy.pk}:1"' in page, "what was seen is still known when it is asked again"
    assert columns(proxy) == before


def test_until_is_compared_with_the_database_clock(operator: Client, proxy: Proxy) -> None:
    tomorrow = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)
    do(operator, "quarantine", [proxy], duration=tomorrow.strftime("%Y-%m-%d %H:%M"))
    assert 86_000 < busy_for(proxy) <= 86_400


def test_all_matching_rows_are_changed_when_all_are_selected(operator: Client) -> None:
    rows = several(Proxy, 4)
    other = new(Proxy, tags="eu")
    answer = operator.post(
        f"{LIST}?tag=eu",
        {"action": "drain", "index": 0, "_selected_action": [other.pk], "select_across": "1"},
    )
    assert "1 selected" in text(answer)
    entered = {"action": "drain", "_selected_action": [other.pk], "select_across": "1", "confirmed": "yes"}
    operator.post(f"{LIST}?tag=eu", {**entered, "reason": "r"})
    assert columns(other)["in_service"] is False
    operator.post(LIST, {**entered, "reason": "r"})
    assert not Proxy.objects.filter(in_service=True).exists()
    assert len(rows) == 4


def test_the_number_of_rows_changed_at_once_is_limited(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(OPERATIONS, "drain", replace(OPERATIONS["drain"], max_rows=3))
    monkeypatch.setattr(operations, "CHUNK", 2)
    rows = several(Proxy, 5)
    assert "More were selected" in text(ask(operator, "drain", rows))
    assert "3 proxies were taken out of service." in do(operator, "drain", rows)
    assert Proxy.objects.filter(in_service=True).count() == 2


@pytest.mark.parametrize("error", [OperationalError, InterfaceError, DatabaseUnavailable])
def test_changes_before_a_database_failure_are_reported_and_logged(
    operator: Client, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fails_later(rows: Any, **entered: Any) -> int:
        if LogEntry.objects.exists():
            raise error("the server went away")
        return OPERATIONS_AS_THEY_ARE["drain"].do(rows, **entered)

    monkeypatch.setitem(OPERATIONS, "drain", replace(OPERATIONS["drain"], do=fails_later))
    monkeypatch.setattr(operations, "CHUNK", 2)
    rows = several(Proxy, 5)
    page = do(operator, "drain", rows)
    assert "2 proxies were taken out of service." in page
    assert "went away" in page
    assert "3 not changed, or unknown" in page
    assert LogEntry.objects.count() == Proxy.objects.filter(in_service=False).count() == 2


def test_a_missing_resource_or_an_unknown_operation_is_not_found(operator: Client, proxy: Proxy) -> None:
    assert operator.get(url(proxy, "explode")).status_code == 404
    for pk in ("0", "x", "9" * 40):
        assert operator.get(f"{LIST}{pk}/operate/revoke/").status_code == 404
        assert operator.get(f"{LIST}{pk}/activity/").status_code == 404


@pytest.mark.django_db(transaction=True)
def test_the_history_has_the_operator_and_the_holder_is_notified() -> None:
    client, proxy = sign_in("operator"), new(Proxy)
    with override_settings(RESOURCEPOOL={"HISTORY": True}):
        held = Proxy.pool.acquire()
        assert held is not None
        do(client, "revoke", [proxy])
        recorder.flush()
    with pytest.raises(LeaseLost):
        held.renew()
    event = Event.objects.get(what=EventKind.REVOKED)
    assert (event.actor, event.reason, event.row) == ("operator", "stuck", str(proxy.pk))
