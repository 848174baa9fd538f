"""A program without Django leases resources, and keeps, loses and releases them."""

import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from resourcepool.leases.keeper import keeper
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import Proxy, Ticket
from resourcepool.rest.grants import Token
from tests.app.models import Device
from tests.app.rows import columns, expire, hold, lasts, new, several
from tests.eventually import InBackground, eventually
from tests.rest.conftest import Caller


def test_what_is_leased_comes_with_all_that_its_holder_needs(crawler: Caller) -> None:
    row = new(Proxy, host="a.example", port=80, username="joe", password="sesame", tags="eu fast")
    got = crawler.got("pools/proxy/acquire", ttl=30, holder="crawler-7")
    name = f"crawler-7 of user {User.objects.get().pk}"
    assert (got["pool"], got["id"], got["holder"]) == ("resourcepool.Proxy", row.pk, name)
    assert got["resource"]["url"] == "http://joe:sesame@a.example:80"
    assert (got["resource"]["password"], got["resource"]["tags"]) == ("sesame", ["eu", "fast"])
    assert 25 < got["expires_in"] <= got["ttl"] == 30
    assert (columns(row)["holder"], columns(row)["fence"]) == (name, got["fence"])
    assert lasts(row, 30)


def test_no_answer_is_kept_by_a_cache(crawler: Caller) -> None:
    new(Proxy)
    assert crawler.post("pools/proxy/acquire")["Cache-Control"] == "no-store"


def test_nothing_here_renews_it_or_releases_it_at_the_end(crawler: Caller) -> None:
    row = new(Proxy)
    got = crawler.got("pools/proxy/acquire")
    assert not keeper.holds(Proxy, "default", row.pk, got["fence"])


def test_its_columns_say_what_a_resource_of_a_projects_own_is(call: Any) -> None:
    row = new(Device, name="phone 1", pin="1234")
    got = call("lease_device").got("pools/testapp.Device/acquire", where={"kind": "phone"})
    assert got["id"] == str(row.pk)
    assert (got["resource"]["name"], got["resource"]["pin"], got["ttl"]) == ("phone 1", "1234", 30.0)


def test_it_is_held_until_it_is_released(crawler: Caller) -> None:
    row = new(Proxy)
    lease = crawler.got("pools/proxy/acquire")["lease"]
    assert Proxy.pool.acquire(wait=False) is None
    crawler.got("leases/release", 204, lease=lease)
    assert columns(row)["holder"] == ""
    hold(row).release()


def test_a_cooldown_that_was_asked_for_is_kept(crawler: Caller) -> None:
    row = new(Proxy)
    crawler.got("leases/release", 204, lease=crawler.got("pools/proxy/acquire", cooldown=20)["lease"])
    assert lasts(row, 20)


def test_renewed_it_lasts_for_its_ttl_again(crawler: Caller) -> None:
    row = new(Proxy)
    lease = crawler.got("pools/proxy/acquire", ttl=1)["lease"]
    before = columns(row)["busy_before"]
    assert 0 < crawler.got("leases/renew", 200, lease=lease)["expires_in"] <= 1
    assert columns(row)["busy_before"] >= before


@pytest.mark.parametrize("act", ["renew", "release", "quarantine"])
def test_a_lease_that_somebody_else_has_now_is_lost_and_left_alone(crawler: Caller, act: str) -> None:
    row = new(Proxy)
    lease = crawler.got("pools/proxy/acquire")["lease"]
    expire(row)
    hold(row)
    before = columns(row)
    answer = crawler.post(f"leases/{act}", lease=lease, **({"reason": "bad"} if act == "quarantine" else {}))
    assert (answer.status_code, answer.json()["error"]) == (409, "LeaseLost")
    assert columns(row) == before


@pytest.mark.parametrize("act", ["renew", "release", "quarantine"])
@pytest.mark.parametrize("of", ["pools/proxy", "locks/nightly"])
def test_one_that_ran_out_is_over_though_nobody_has_it(crawler: Caller, of: str, act: str) -> None:
    new(Proxy)
    lease = crawler.got(f"{of}/acquire")["lease"]
    row: Any = Proxy.objects.get() if "proxy" in of else LockRow.objects.get()
    expire(row)
    before = columns(row)
    sent = {"reason": "bad"} if act == "quarantine" else {}
    answer = crawler.post(f"leases/{act}", lease=lease, **sent)
    if (of, act) == ("locks/nightly", "quarantine"):
        assert answer.status_code == 400  # a lock cannot be quarantined
    else:
        assert (answer.status_code, answer.json()["error"]) == (409, "LeaseLost")
        assert act == "renew" or "not renewed" in answer.json()["detail"]
    assert columns(row) == before


def test_released_twice_it_is_over_the_second_time(crawler: Caller) -> None:
    new(Proxy)
    lease = crawler.got("pools/proxy/acquire")["lease"]
    crawler.got("leases/release", 204, lease=lease)
    assert "released before" in crawler.post("leases/release", lease=lease).json()["detail"]


def test_it_is_not_renewed_beyond_max_hold(crawler: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    row, now = new(Proxy), time.time()
    lease = crawler.got("pools/proxy/acquire", ttl=20, max_hold=60)["lease"]
    monkeypatch.setattr(time, "time", lambda: now + 50)
    assert crawler.got("leases/renew", 200, lease=lease)["expires_in"] <= 10
    monkeypatch.setattr(time, "time", lambda: now + 61)
    before = columns(row)
    answer = crawler.post("leases/renew", lease=lease)
    assert answer.status_code == 409
    assert "60" in answer.json()["detail"]
    assert columns(row) == before


def test_a_bad_resource_is_quarantined_by_its_holder(crawler: Caller) -> None:
    row = new(Proxy)
    lease = crawler.got("pools/proxy/acquire")["lease"]
    crawler.got("leases/quarantine", 204, lease=lease, reason="banned by the shop")
    assert (columns(row)["status"], columns(row)["reason"]) == ("quarantined", "banned by the shop")


def test_nothing_free_is_said_at_once_and_when_to_ask_again(crawler: Caller) -> None:
    hold(new(Proxy))
    answer = crawler.post("pools/proxy/acquire")
    assert (answer.status_code, answer["Retry-After"], answer.json()["error"]) == (423, "1", "AcquireTimeout")
    assert not Ticket.objects.exists()


def test_who_waits_stands_in_line_and_gets_what_is_released(transactional_db: None, crawler: Caller) -> None:
    lease = hold(new(Proxy))
    waiting = InBackground(lambda: crawler.got("pools/proxy/acquire", ttl=30, timeout=25))
    eventually(lambda: Ticket.objects.waiting().exists())
    lease.release()
    got = waiting.result(30)
    assert got["id"] == lease.pk
    assert 25 < got["expires_in"] <= got["ttl"] == 30  # it was handed over for a few seconds


def test_one_that_an_operator_freed_is_lost(root: Caller) -> None:
    row = new(Proxy)
    lease = root.got("pools/proxy/acquire")["lease"]
    root.got("pools/proxy/operations/revoke", 200, all=True, reason="hangs")
    assert [root.post(f"leases/{act}", lease=lease).status_code for act in ("renew", "release")] == [409, 409]
    assert columns(row)["holder"] == ""


def test_a_row_made_anew_under_the_key_of_a_deleted_one_is_another(root: Caller) -> None:
    made = Device.objects.create(name="phone 1")
    lease = root.got("pools/device/acquire")["lease"]
    Device.objects.all()._raw_delete("default")
    assert root.post("leases/renew", lease=lease).status_code == 409
    row = Device.objects.create(pk=made.pk, name="phone 1")
    again = root.got("pools/device/acquire")
    assert again["id"] == str(made.pk)
    assert [root.post(f"leases/{act}", lease=lease).status_code for act in ("renew", "release")] == [409, 409]
    assert (columns(row)["holder"], columns(row)["fence"]) == (again["holder"], again["fence"])


def test_a_token_that_was_made_up_or_changed_is_none(crawler: Caller) -> None:
    row = new(Proxy)
    lease = crawler.got("pools/proxy/acquire")["lease"]
    for text in ("", "x", lease[:-1], f"{lease}x", "x" * 10_000, 7, None, ["x"]):
        answer = crawler.post("leases/release", lease=text)
        assert (answer.status_code, answer.json()["name"]) == (400, "lease")
        assert str(text) not in answer.json()["detail"] or len(str(text)) < 2
    assert columns(row)["holder"]


def test_the_longest_names_fit_in_a_token(crawler: Caller) -> None:
    name, holder = "\N{GRINNING FACE}" * 200, "\N{GRINNING FACE}" * 72
    asked = {"holder": holder, "request_id": holder[:64], "ttl": 12.345678}
    lease = crawler.got(f"locks/{name}/acquire", **asked)["lease"]
    crawler.got("leases/renew", 200, lease=lease)
    crawler.got("leases/release", 204, lease=lease)


def test_a_token_of_a_pool_that_is_gone_says_which_there_are(crawler: Caller) -> None:
    token = Token("shop.phone", "1", 1, "me", 0.0, 1.0, 0.0, None).signed()
    assert "resourcepool.Proxy" in crawler.post("leases/release", lease=token).json()["detail"]


def test_a_view_in_a_transaction_grants_all_the_same(transactional_db: None, crawler: Caller) -> None:
    new(Proxy)
    connection.settings_dict["ATOMIC_REQUESTS"] = True
    try:
        crawler.got("pools/proxy/acquire")
    finally:
        connection.settings_dict["ATOMIC_REQUESTS"] = False


def test_a_resource_that_cannot_be_read_is_given_back(crawler: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    row = new(Proxy)
    monkeypatch.setattr(Proxy, "for_holder", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        crawler.post("pools/proxy/acquire")
    assert columns(row)["holder"] == ""


WRONG = [
    ({"timeout": 26}, "timeout"),
    ({"timeout": "5"}, "timeout"),
    ({"ttl": 0}, "ttl"),
    ({"holder": "a\nb"}, "holder"),
    ({"holder": "crawler #7"}, "holder"),
    ({"request_id": ""}, "request_id"),
    ({"strategy": "best"}, "strategy"),
    ({"where": "country=US"}, "where"),
    ({"where": {"allow_in_transaction": True}}, "where"),
    ({"where": {"timeout": 100}}, "where"),
    ({"where": {"password": "x"}}, "password"),
    ({"where": {"nothing": "x"}}, "nothing"),
    ({"allow_in_transaction": True}, "allow_in_transaction"),
    ({"on_lost": "x"}, "on_lost"),
]


@pytest.mark.parametrize(("sent", "name"), WRONG, ids=str)
def test_what_is_wrong_is_named_and_nothing_is_granted(crawler: Caller, sent: Any, name: str) -> None:
    rows = several(Proxy, 2)
    answer = crawler.post("pools/proxy/acquire", **sent)
    assert (answer.status_code, answer.json()["error"], answer.json()["name"]) == (400, "BadOption", name)
    assert [columns(row)["holder"] for row in rows] == ["", ""]


@pytest.mark.parametrize("text", ["", "[]", "1", "null", '"x"', "{", "\xff", "[" * 100_000])
def test_a_body_that_is_no_object_is_refused(crawler: Caller, text: str) -> None:
    new(Proxy)
    answer = crawler.send("pools/proxy/acquire", text)
    assert answer.status_code == (201 if text == "" else 400)


def test_a_form_is_no_json(crawler: Caller) -> None:
    assert crawler.send("pools/proxy/acquire", "ttl=3", "application/x-www-form-urlencoded").status_code == 415


def test_errors_of_the_framework_have_the_same_form(crawler: Caller) -> None:
    answer = crawler.send("pools/proxy/acquire", "{")
    assert (answer.status_code, answer.json()["error"]) == (400, "ParseError")
    assert crawler.get("pools/proxy/acquire").json()["error"] == "MethodNotAllowed"
    assert crawler.get("pools/proxy").json()["error"] == "PermissionDenied"
