"""Every operation of the admin, from a shell; ``resourcepool_close`` and ``resourcepool_drain`` are two of them."""

from dataclasses import replace
from typing import Any

import pytest

from resourcepool.exceptions import RowLocked
from resourcepool.models import Proxy
from resourcepool.operations import OPERATIONS
from resourcepool.operations.operation import Operation
from resourcepool.resources.state import Status
from tests.admin.conftest import event as begun
from tests.app.models import Device
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


@pytest.mark.parametrize("command", ["close", "drain"])
class TestArguments:
    def test_ids_may_follow_the_options(self, command: str) -> None:
        first, second, other = rows = several(Proxy, 3)
        for row in rows:
            hold(row)
        done = run(command, "proxy", "--reason", "hangs", first.pk, "--limit", 5, second.pk)
        assert (done.code, done.err) == (0, "")
        as_before = columns(other)
        assert (as_before["in_service"], as_before["holder"]) == (True, "me")
        assert columns(first) != columns(other)
        assert [f"\n{row.pk} " in done.out for row in rows] == [True, True, False]

    def test_what_only_lists_needs_no_reason(self, command: str) -> None:
        (row,) = several(Proxy, 1)
        hold(row)
        assert run(command, "proxy", row.pk, "--dry-run").code == 0
        refused = run(command, "proxy", row.pk)
        assert (refused.err[:20], refused.code) == ("--reason: required, ", 1)
        assert columns(row)["in_service"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("revoke proxy --reason x", "select resources by ids, --tag, --where, --holder or --host"),
        ("revoke --all --host h --reason x", "select resources by"),
        ("revoke proxy {pk}", "--reason: required, one line of 1 to 200 characters"),
        (["revoke", "proxy", "{pk}", "--reason", "two\nlines"], "one line of text"),
        ("revoke proxy {pk} --reason x --for 2h", "--for cannot be combined with revoke"),
        ("revoke proxy {pk} --reason x", "nothing to do: 1 skipped: no longer held"),
        ("revoke nope {pk} --reason x", "pool='nope' is not allowed: it must be one of resourcepool.Proxy"),
        ("revoke proxy 987654 --reason x", "id='987654' is not allowed: no resourcepool.Proxy has this id"),
        (
            "revoke proxy one --reason x",
            "id='one' is not allowed: it must be a primary key of resourcepool.Proxy",
        ),
        (f"revoke proxy {'9' * 30} --reason x", "a primary key of resourcepool.Proxy"),
        ("quarantine proxy {pk} --reason x", "--for: required, e.g. 90s, 15m, 2h or 7d"),
        ("quarantine proxy {pk} --reason x --for 99d", "--for="),
        ("quarantine proxy {pk} --reason x --for fortnight", "is not a duration; write 90s, 15m, 2h or 7d"),
        (["reserve", "proxy", "{pk}", "--reason", "x" * 199, "--name", "Ann"], "reason="),
        ("check proxy {pk}", "resourcepool.Proxy does not support check"),
        ("explode proxy {pk}", "invalid choice: 'explode'"),
        ("drain proxy --tag ue --reason x", "nothing to do: no such resource"),
        ("drain proxy --where country --reason x", "FIELD=VALUE, such as country=US"),
        (
            "drain proxy --where cuntry=US --reason x",
            "no such selector; did you mean country? resourcepool.Proxy has: country, host",
        ),
        ("drain proxy --where port=many --reason x", "port='many' is not allowed"),
        ("drain testapp.Device --where is_rooted=maybe --reason x", "is_rooted='maybe' is not allowed"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(words: Any, said: str) -> None:
    row = new(Proxy)
    before = columns(row)
    given = words.split() if isinstance(words, str) else words
    refused = run("operate", *(word.format(pk=row.pk) for word in given))
    assert said in refused.err
    assert refused.code
    assert columns(row) == before


def test_options_of_another_operation_are_refused() -> None:
    assert (
        "--for cannot be combined with return_to_service"
        in run("drain", "proxy", 1, "--back", "--for", "2h").err
    )


def revokes(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let revoking raise this error."""

    def fail(*args: Any, **more: Any) -> int:
        raise error

    monkeypatch.setitem(OPERATIONS, "revoke", replace(OPERATIONS["revoke"], do=fail))


def test_when_none_was_closed_nobody_is_said_to_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = new(Proxy)
    hold(proxy)
    revokes(monkeypatch, RowLocked("locked"))
    closed = run("close", "proxy", proxy.pk, "--reason", "hangs")
    assert "revoked" not in closed.out
    assert (closed.err, closed.code) == ("locked\n", 1)


def test_by_holder_and_by_host_in_every_pool() -> None:
    mine, others, device = new(Proxy), new(Proxy), new(Device)
    hold(mine, holder="crawler3/1/MainThread/a.1")
    hold(others, holder="crawler33/1/MainThread/a.1")
    hold(device, holder="crawler3/2/MainThread/b.1")
    closed = run("close", "--host", "crawler3", "--reason", "gone", "--json").json
    assert (closed["found"], closed["changed"]) == (2, 2)
    assert {one["id"] for one in closed["resources"]} == {mine.pk, str(device.pk)}
    assert columns(others)["holder"]
    assert run("close", "--holder", "crawler33/1/MainThread/a.1", "--reason", "gone").code == 0
    assert not columns(others)["holder"]


def test_by_host_also_those_with_a_name_of_their_own() -> None:
    proxy, device, elsewhere, earlier = new(Proxy), new(Device), new(Proxy), new(Proxy)
    for row in (proxy, device, elsewhere, earlier):
        hold(row, holder="crawler-1")
        row.refresh_from_db()
    begun(proxy, host="web-1")
    begun(device, host="web-1")
    begun(elsewhere, host="web-2")
    begun(earlier, host="web-1", fence=earlier.fence - 1)
    listed = run("status", "--host", "web-1", "--json").json
    assert {one["id"] for one in listed["leases"]} == {proxy.pk, str(device.pk)}
    closed = run("close", "--host", "web-1", "--reason", "gone", "--json").json
    assert closed["changed"] == 2
    assert columns(elsewhere)["holder"] == columns(earlier)["holder"] == "crawler-1"


def test_what_nobody_holds_is_no_error_beside_what_was_revoked() -> None:
    held, free = several(Proxy, 2)
    hold(held)
    assert run("close", "proxy", held.pk, free.pk, "--reason", "x").code == 0
    again = run("close", "proxy", held.pk, "--reason", "x")
    assert again.err == "nothing to do: 1 skipped: no longer held, or held by someone else.\n"
    assert again.code == 1


def test_ctrl_c_says_what_is_so(monkeypatch: pytest.MonkeyPatch) -> None:
    revokes(monkeypatch, KeyboardInterrupt())
    proxy = new(Proxy)
    hold(proxy)
    stopped = run("close", "proxy", proxy.pk, "--reason", "x")
    assert stopped.err == "interrupted; leases already revoked stay revoked; run again for the rest\n"
    assert stopped.code == 130


def out(**fields: Any) -> Any:
    return new(Proxy, in_service=False, status=Status.OUT_OF_SERVICE, reason="cable", **fields)


class TestOut:
    def test_by_tag_and_by_field(self) -> None:
        eu, us, old = new(Proxy, tags="eu fast"), new(Proxy, tags="us"), new(Proxy, tags="eu", port=8080)
        run("drain", "proxy", "--tag", "eu", "--where", "port=3128", "--reason", "x")
        assert [columns(row)["in_service"] for row in (eu, us, old)] == [False, True, True]
        rooted = new(Device, is_rooted=True)
        whole = new(Device)
        run("drain", "testapp.Device", "--where", "is_rooted=true", "--where", "owner=", "--reason", "x")
        assert [columns(row)["in_service"] for row in (rooted, whole)] == [False, True]
        red, blue = new(Proxy, country="DE"), new(Proxy, country="FR")
        run("drain", "proxy", "--where", "country=DE", "--where", "country=FR", "--reason", "x")
        assert [columns(row)["in_service"] for row in (red, blue)] == [False, False]

    def test_for_a_while(self) -> None:
        proxy = new(Proxy)
        run("drain", "proxy", proxy.pk, "--reason", "x", "--for", "2h")
        row = columns(proxy)
        assert row["until"] is not None
        assert row["status"] == Status.OUT_OF_SERVICE

    def test_by_id_what_is_quarantined_after_its_lease_is_out_for_good(self) -> None:
        proxy = new(Proxy)
        hold(proxy)
        Proxy.objects.quarantine("banned", 600)
        assert run("drain", "proxy", proxy.pk, "--reason", "sold").code == 0
        assert (columns(proxy)["status"], columns(proxy)["until"]) == (Status.OUT_OF_SERVICE, None)

    def test_otherwise_what_is_out_already_stays_as_it_is(self) -> None:
        away = out(tags="eu")
        assert "nothing to do" in run("drain", "proxy", "--tag", "eu", "--reason", "longer").err
        assert columns(away)["reason"] == "cable"

    def test_a_dry_run_only_lists_and_counts_what_it_does_not_list(self) -> None:
        rows = several(Proxy, 4)
        listed = run("drain", "proxy", "--all", "--reason", "x", "--dry-run", "--limit", 3)
        *_, more, end = listed.out.splitlines()
        assert (more, end) == ("1 more; use --limit to show more", "Would change 4 proxies.")
        assert all(columns(row)["in_service"] for row in rows)


class TestBack:
    def test_by_tag_what_is_out_of_service_but_nothing_else(self) -> None:
        away = out(tags="eu")
        retired = new(Proxy, in_service=False, status=Status.RETIRED, tags="eu")
        reserved = new(Proxy, in_service=False, status=Status.RESERVED, tags="eu")
        assert run("drain", "proxy", "--tag", "eu", "--back").out.endswith(
            f"Proxy {away} was returned to service.\n"
        )
        assert [columns(row)["in_service"] for row in (away, retired, reserved)] == [True, False, False]
        assert run("drain", "proxy", retired.pk, "--back").code == 0
        assert columns(retired)["in_service"]
