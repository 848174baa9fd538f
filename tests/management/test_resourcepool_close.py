"""Taking leases away from a shell."""

from dataclasses import replace
from typing import Any

import pytest

from resourcepool.exceptions import RowLocked
from resourcepool.models import Proxy
from resourcepool.operations import OPERATIONS
from tests.admin.conftest import event as begun
from tests.app.models import Device
from tests.app.rows import columns, hold, new, several
from tests.management.command_runner import run

pytestmark = pytest.mark.usefixtures("history")


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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--reason", "x"], "select resources by ids, --tag, --where, --holder or --host"),
        (["--all", "--host", "h", "--reason", "x"], "select resources by"),
        (["proxy", "1"], "--reason"),
        (["proxy", "1", "--reason", "two\nlines"], "one line of text"),
        (
            ["proxy", "one", "--reason", "x"],
            "id='one' is not allowed: it must be a primary key of resourcepool.Proxy",
        ),
        (["proxy", "9" * 30, "--reason", "x"], "a primary key of resourcepool.Proxy"),
        (["nope", "1", "--reason", "x"], "one of resourcepool.Proxy"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(words: list[str], said: str) -> None:
    proxy: Any = new(Proxy)
    hold(proxy)
    refused = run("close", *words)
    assert said in refused.err
    assert refused.code == 1
    assert columns(proxy)["holder"]


def test_ctrl_c_says_what_is_so(monkeypatch: pytest.MonkeyPatch) -> None:
    revokes(monkeypatch, KeyboardInterrupt())
    proxy = new(Proxy)
    hold(proxy)
    stopped = run("close", "proxy", proxy.pk, "--reason", "x")
    assert stopped.err == "interrupted; leases already revoked stay revoked; run again for the rest\n"
    assert stopped.code == 130
