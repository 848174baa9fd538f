"""``manage.py resourcepool_check`` and ``resourcepool_fix``, as an operator and as a program see them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from resourcepool import events
from resourcepool.db.dialect import DbLater
from resourcepool.documentation import documented
from resourcepool.jobs import run as run_job
from resourcepool.models import Job, Proxy
from resourcepool.resources.state import Status
from resourcepool.status.alarms import AlarmKind, alarms
from tests.app.rows import columns, hold, new, several
from tests.committed import *  # noqa: F403 (fixtures)
from tests.health_checks.scripted_checker import BAD, ScriptedChecker
from tests.management.command_runner import Ran, run
from tests.proxies.health_check import servers


@pytest.fixture(autouse=True)
def _on_committed_rows(transactional_db: None) -> None:
    pass


@pytest.fixture(autouse=True)
def _scripted(settings: Any) -> Iterator[None]:
    chosen = {"resourcepool.Proxy": {"checker": f"{ScriptedChecker.__module__}.ScriptedChecker", "timeout": 5}}
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": chosen}
    yield
    ScriptedChecker.forget()


def parked(reason: str) -> Any:
    away = {"status": Status.QUARANTINED, "reason": reason, "until": DbLater(1_000)}
    return new(Proxy, busy_before=DbLater(1_000), **away)


def test_a_line_each_and_a_sum() -> None:
    row = new(Proxy)
    said = run("check")
    first, last = said.out.splitlines()
    assert first == f"ok        {row.pk}  {row}  0.10 s"
    assert last == "resourcepool.Proxy: 1 ok, 0 bad, 0 unknown."
    assert (said.code, said.err) == (0, "")


def test_a_bad_one_is_put_away_and_ends_with_1() -> None:
    good, bad = new(Proxy), new(Proxy)
    ScriptedChecker.finds = {bad.pk: BAD}
    said = run("check", "proxy")
    assert f"bad       {bad.pk}  {bad}  0.20 s  refused the connection -> quarantined" in said.out.splitlines()
    assert said.out.splitlines()[-1] == "resourcepool.Proxy: 1 ok, 1 bad, 0 unknown; 1 quarantined."
    assert said.code == 1
    assert (columns(good)["status"], columns(bad)["status"]) == ("in_service", "quarantined")


def test_a_whole_pool_is_a_job_whose_result_is_written_down() -> None:
    new(Proxy)
    hold(new(Proxy))
    assert "1 ok, 0 bad, 0 unknown; 1 in use." in run("check").out
    assert columns(Job(pk="check resourcepool.Proxy"))["result"] == "1 ok, 0 bad, 0 unknown; 1 in use"


def test_a_check_that_is_being_done_elsewhere_is_not_done_twice() -> None:
    new(Proxy)
    said: list[Ran] = []
    run_job("check resourcepool.Proxy", lambda _: said.append(run("check")) or "")
    assert said == [Ran("", "resourcepool.Proxy is being checked by another process\n", 3)]


def test_given_ones_are_checked_all_the_same_and_the_job_is_not_done_by_that() -> None:
    one, other = new(Proxy), new(Proxy)
    said: list[Ran] = []
    run_job(
        "check resourcepool.Proxy",
        lambda _: said.append(run("check", "proxy", str(one.pk))) or "",
    )
    assert said[0].code == 0
    assert columns(one)["verdict"] == "ok"
    assert columns(other)["verdict"] == ""


def test_a_given_one_that_is_held_is_named_and_left_alone() -> None:
    row = new(Proxy)
    lease = hold(row)
    said = run("fix", "proxy", str(row.pk))
    assert f"-         {row.pk}  proxy {row.pk}  in use\n" in said.out
    lease.renew()


@pytest.mark.parametrize("words", [("proxy", "999999"), ("proxy", "x"), ("till",)])
def test_what_does_not_exist_is_named(words: tuple[str, ...]) -> None:
    said = run("check", *words)
    assert said.code == 1
    assert words[-1] in said.err


def test_a_dry_run_changes_nothing_and_is_no_job() -> None:
    row = new(Proxy)
    ScriptedChecker.finds = {row.pk: BAD}
    said = run("check", "--dry-run")
    assert (said.code, "1 bad" in said.out, "quarantined" in said.out) == (1, True, False)
    assert columns(row)["verdict"] == ""
    assert not Job.objects.exists()


def test_a_broken_checker_changes_nothing_ends_with_2_and_raises_an_alarm() -> None:
    rows = several(Proxy, 6)
    ScriptedChecker.finds = {row.pk: BAD for row in rows}
    said = run("check")
    assert said.code == 2
    assert "resourcepool.Proxy: 6 of 6 failed together (6 times: refused the connection)" in said.err
    assert {columns(row)["status"] for row in rows} == {"in_service"}
    assert [one.pool for one in alarms() if one.kind is AlarmKind.CHECKER_BROKEN] == ["resourcepool.Proxy"]
    said = run("fix", "--believe")
    assert (said.code, {columns(row)["status"] for row in rows}) == (0, {"quarantined"})
    assert AlarmKind.CHECKER_BROKEN not in [one.kind for one in alarms()]


def test_fix_returns_what_others_have_put_away_and_check_does_not() -> None:
    ours, theirs = (
        parked(events.sentence_for("check", why=events.sentence_for("connection_refused"))),
        parked("403 from the shop"),
    )
    assert "1 returned to service" in run("check").out
    assert [columns(row)["status"] for row in (ours, theirs)] == ["in_service", "quarantined"]
    said = run("fix", "proxy", str(theirs.pk))
    assert f"ok        {theirs.pk}  {theirs}  0.10 s -> returned" in said.out
    assert columns(theirs)["status"] == "in_service"


def test_json_is_one_object_a_line() -> None:
    row = new(Proxy)
    (shown,) = [json.loads(line) for line in run("check", "--json").out.splitlines()]
    assert shown == {
        "pool": "resourcepool.Proxy",
        "id": str(row.pk),
        "name": str(row),
        "verdict": "ok",
        "seconds": 0.1,
        "why": "",
        "done": "nothing",
    }


def test_without_a_checker_it_says_where_to_read(settings: Any) -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": {}}
    for words in ([], ["proxy"]):
        said = run("check", *words)
        assert (said.code, documented("how-to/health-checks") in said.err) == (1, True)


def test_the_real_thing_and_no_password_anywhere(settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    secret = "c4n4ry:s@cret"
    with servers.serving(servers.page) as (target, _), servers.serving(servers.http_proxy(target)) as (port, _):
        good = new(Proxy, host="127.0.0.1", port=port, username="joe", password=secret)
        bad = new(Proxy, host="127.0.0.1", port=servers.closed_port(), username="joe", password=secret)
        chosen = {"url": "http://target.test/", "text": "hello", "allow": ["127.0.0.1"]}
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": {"resourcepool.Proxy": chosen}}
        said = run("check")
    assert said.code == 1
    assert [columns(row)["verdict"] for row in (good, bad)] == ["ok", "bad"]
    assert columns(bad)["reason"] == "check: refused the connection"
    for text in (said.out, said.err, caplog.text):
        assert "c4n4ry" not in text
