"""``manage.py resourcepool_status``: pools, alarms and active leases."""

import datetime
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError

from resourcepool.db.dialect import DbLater
from resourcepool.management import subcommands
from resourcepool.management.commands import resourcepool_status as command
from resourcepool.models import Proxy
from resourcepool.resources.state import Status
from tests.app.models import Device
from tests.app.rows import hold, new, several
from tests.history.recorded import told
from tests.management.command_runner import run
from tests.management.test_base import Terminal
from tests.waiting.threads import ticket

pytestmark = pytest.mark.usefixtures("history")


def test_a_line_for_each_pool_says_how_many_are_where() -> None:
    several(Proxy, 3)
    hold(new(Proxy))
    new(Proxy, in_service=False, status=Status.OUT_OF_SERVICE)
    ticket(Proxy, asked_at=DbLater(-70))
    shown = run("status")
    head, *lines = shown.out.splitlines()
    assert head.split() == (
        ["pool", "free", "leased", "cooling", "draining", "quarantined", "out", "used", "waiting", "oldest"]
    )
    (line,) = [line for line in lines if line.startswith("resourcepool.Proxy ")]
    assert line.split()[:9] == ["resourcepool.Proxy", "3", "1", "0", "0", "0", "1", "25%", "1"]
    assert shown.code == 0


def test_a_pool_without_a_table_says_what_to_type_and_hides_nothing_of_the_others() -> None:
    shown = run("status", "--leases")
    assert "testapp.Ghost: " in shown.out
    assert "migrate" in shown.out
    assert "resourcepool.Proxy" in shown.out
    assert "No active leases." in shown.out
    assert shown.code == 0


def test_what_is_wrong_is_said_in_words() -> None:
    assert (
        "Alarms:\n  [sweep_stale] The sweep has never finished; run `manage.py resourcepool_sweep`"
        in run("status", "proxy").out
    )


class TestWhoHoldsWhat:
    def test_with_a_pool(self) -> None:
        proxy = new(Proxy)
        hold(proxy, holder="crawler 7", ttl=320)
        *_, head, line = run("status", "proxy").out.splitlines()
        assert head.split("  ")[0] == "id"
        assert line.startswith(f"{proxy.pk} ")
        assert "crawler 7" in line
        assert "5 min" in line

    def test_of_one_holder_or_one_host(self) -> None:
        mine, other = new(Proxy), new(Device)
        hold(mine, holder="crawler3/77/MainThread/a.1")
        hold(other, holder="alice")
        assert [one["id"] for one in run("status", "--host", "crawler3", "--json").json["leases"]] == [mine.pk]
        assert [one["id"] for one in run("status", "--holder", "alice", "--json").json["leases"]] == [
            str(other.pk)
        ]
        nobody = run("status", "--host", "crawler")
        assert nobody.code == 1
        assert "No active leases." in nobody.out

    def test_since_when_by_the_clock_of_the_database_whatever_this_host_believes(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        proxy = new(Proxy)
        hold(proxy)
        told(proxy)
        ahead = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=3)
        monkeypatch.setattr("django.utils.timezone.now", lambda: ahead)
        (lease,) = run("status", "proxy", "--json").json["leases"]
        assert lease["held"] < 600
        assert " h ago" not in run("status", "proxy").out
        assert " h ago" not in run("why", proxy.pk).out

    def test_only_so_many_are_listed_and_the_others_counted(self) -> None:
        for proxy in several(Proxy, 5):
            hold(proxy)
        shown = run("status", "proxy", "--limit", 2)
        assert shown.out.splitlines()[-1] == "3 more; use --limit to show more"
        assert "more;" not in run("status", "proxy", "--limit", 5).out

    def test_since_when_if_the_history_knows(self) -> None:
        proxy = new(Proxy)
        lease: Any = Proxy.pool.acquire()
        assert told(proxy) == ["acquired"]
        (one,) = run("status", "proxy", "--json").json["leases"]
        assert one["held"] < 50
        assert one["pid"] > 0
        lease.release()


def test_json_is_one_object() -> None:
    new(Proxy)
    shown = run("status", "--json").json
    assert set(shown) == {"pools", "jobs", "alarms"}
    (pool,) = [pool for pool in shown["pools"] if pool["label"] == "resourcepool.Proxy"]
    assert (pool["counts"]["free"], pool["total"], pool["utilisation"]) == (1, 1, 0.0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nope"], "pool='nope' is not allowed: it must be one of resourcepool.Proxy, testapp.Device"),
        (["--watch", "0"], "--watch=0.0 is not allowed: it must be seconds"),
        (["--limit", "0"], "'0' is not a whole number from 1 to 10000"),
    ],
)
def test_bad_input_is_one_sentence_that_names_it_and_what_is_allowed(words: list[str], said: str) -> None:
    refused = run("status", *words)
    assert said in refused.err
    assert refused.err.count("\n") == 1
    assert refused.out == ""
    assert refused.code == 1


class TestWatching:
    def test_goes_on_until_ctrl_c_and_over_an_outage(self, monkeypatch: pytest.MonkeyPatch) -> None:
        looks: list[str] = []
        look = command.Command._report

        def once_down(self: Any, models: list[Any], **options: Any) -> Any:
            looks.append("look")
            if len(looks) == 2:
                raise DatabaseError("gone away")
            return look(self, models, **options)

        def pause(seconds: float) -> None:
            assert seconds == 5.0
            if len(looks) == 3:
                raise KeyboardInterrupt

        monkeypatch.setattr(command.Command, "_report", once_down)
        monkeypatch.setattr(subcommands, "interruptible_sleep", pause)
        shown = run("status", "proxy", "--watch", 5, "--json")
        assert len(shown.out.splitlines()) == 2
        assert shown.err == "gone away\n"
        assert shown.code == 0

    def test_on_a_terminal_the_rows_stay_in_place(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pauses = iter([None, KeyboardInterrupt()])

        def pause(seconds: float) -> None:
            if (error := next(pauses)) is not None:
                raise error

        monkeypatch.setattr(subcommands, "interruptible_sleep", pause)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "200")
        hold(new(Proxy), holder="[red]evil\x1b]0;owned\x07[/]")
        screen = Terminal()
        call_command("resourcepool_status", "proxy", "--watch", stdout=screen, no_color=True)
        first, again = screen.getvalue().split("\x1b[2K\x1b[1A", 1)
        assert "[red]evil?]0;owned?[/]" in first
        assert first.count("resourcepool.Proxy") == 1
        assert "resourcepool.Proxy" in again
        assert "\x1b[2J" not in screen.getvalue()
        assert screen.getvalue().endswith("\x1b[?25h")  # the cursor is back
