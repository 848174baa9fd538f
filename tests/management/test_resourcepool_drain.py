"""Out of service and back, from a shell."""

from typing import Any

import pytest

from resourcepool.management.commands import resourcepool_drain as command
from resourcepool.models import Proxy
from resourcepool.resources.state import Status
from tests.app.models import Device
from tests.app.rows import columns, hold, new, several
from tests.eventually import InBackground, eventually
from tests.management.command_runner import run

pytestmark = pytest.mark.usefixtures("history")


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


class TestWaiting:
    def test_ends_when_the_last_lease_does(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(command, "POLL", 0.02)
        proxy = new(Proxy)
        lease = hold(proxy)
        waiting = InBackground(run, "drain", "proxy", proxy.pk, "--reason", "x", "--wait", 30, "--json")
        eventually(lambda: not columns(proxy)["in_service"])
        lease.release()
        done = waiting.result(40)
        assert done.json == {"dry_run": False, "found": 1, "changed": 1, "still_held": 0} | {
            "resources": [{"id": proxy.pk, "name": str(proxy), "holder": "me"}]
        }
        assert done.code == 0

    def test_says_who_still_holds_what_when_its_time_is_over(self) -> None:
        proxy = new(Proxy)
        hold(proxy, holder="slow one")
        ended = run("drain", "proxy", proxy.pk, "--reason", "x", "--wait", 0)
        assert "slow one" in ended.err
        assert ended.err.endswith("1 still held; they go out of service when their leases end\n")
        assert ended.code == 1
        assert not columns(proxy)["in_service"]

    def test_ctrl_c_disturbs_nobody(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupt(*args: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(command.Command, "_wait", interrupt)
        proxy = new(Proxy)
        lease = hold(proxy)
        stopped = run("drain", "proxy", proxy.pk, "--reason", "x", "--wait", 30)
        assert (stopped.err, stopped.code) == (
            "interrupted; completed changes were kept; no lease was disturbed\n",
            130,
        )
        lease.renew()
        assert not columns(proxy)["in_service"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["proxy", "--reason", "x"], "select resources by ids, --tag, --where, --holder or --host"),
        (
            ["proxy", "99999999", "--reason", "x"],
            "id='99999999' is not allowed: no resourcepool.Proxy has this id",
        ),
        (["proxy", "--tag", "ue", "--reason", "x"], "nothing to do: no such resource"),
        (["proxy", "--all"], "--reason: required, one line of 1 to 200 characters"),
        (["proxy", "--all", "--back", "--for", "2h"], "--for cannot be combined with --back"),
        (
            ["proxy", "--all", "--reason", "x", "--for", "2 fortnights"],
            "is not a duration; write 90s, 15m, 2h or 7d",
        ),
        (["proxy", "--all", "--reason", "x", "--for", "99d"], "--for="),
        (["proxy", "--where", "country", "--reason", "x"], "FIELD=VALUE, such as country=US"),
        (
            ["proxy", "--where", "cuntry=US", "--reason", "x"],
            "no such selector; did you mean country? resourcepool.Proxy has: country, host",
        ),
        (["proxy", "--where", "port=many", "--reason", "x"], "port='many' is not allowed"),
        (["testapp.Device", "--where", "is_rooted=maybe", "--reason", "x"], "is_rooted='maybe' is not allowed"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(words: list[str], said: str) -> None:
    proxy = new(Proxy)
    refused = run("drain", *words)
    assert said in refused.err
    assert refused.code == 1
    assert columns(proxy)["in_service"]
