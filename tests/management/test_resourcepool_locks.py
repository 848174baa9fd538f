"""What an operator sees of locks, and takes away, from a shell."""

import json

import pytest

from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import SemaphorePermit
from tests.management.command_runner import run
from tests.status.locks.conftest import A, B, C, crowd, later, lock, permits, stands, waits

__all__ = ["crowd"]

pytestmark = pytest.mark.django_db


def test_without_locks_it_says_so() -> None:
    assert run("locks").out == "No names found.\n"
    assert run("locks", "cycles").out == "No wait cycle.\n"


@pytest.mark.usefixtures("crowd")
class TestShowing:
    def test_all_names_are_listed_within_80_columns(self) -> None:
        lines = run("locks").out.splitlines()
        assert lines[0].split() == ["kind", "name", "held", "holder", "waiters", "longest", "wait"]
        *cells, seconds, unit = lines[1].split()
        assert (cells, unit) == (["lock", "busy", "1/1", "web-1/4711/worker-1", "2"], "s")
        assert 40 <= int(seconds) < 100
        assert lines[6].split()[:3] == ["condition", "orders", "-"]
        assert max(map(len, lines)) <= 80

    def test_a_page_is_asked_for_by_name_kind_and_standing(self) -> None:
        first = run("locks", "list", "--limit", "1").out
        assert "There are more: list --after busy" in first
        assert "catalogue" in run("locks", "list", "--limit", "1", "--after", "busy").out
        names = [one["name"] for one in json.loads(run("locks", "list", "--held", "--json").out)["locks"]]
        assert names == ["busy", "busy", "catalogue"]
        assert run("locks", "list", "--prefix", "x").out == "No names found.\n"
        assert run("locks", "list", "--limit", "0").code == 1

    def test_one_name_is_shown_with_holders_and_line(self) -> None:
        shown = run("locks", "show", "busy", "--kind", "semaphore").out
        for part in ("semaphore busy", "3/4", A, B, later(C), "30 s"):
            assert part in shown
        both = json.loads(run("locks", "show", "busy", "--json").out)
        assert [one["kind"] for one in both["locks"]] == ["lock", "semaphore"]
        assert run("locks", "show", "nothing").code == 1

    def test_who_waits_for_more_permits_is_told_from_who_holds_them(self) -> None:
        permits("rwlock", "rates", [later(A), later(A), B])
        waits("rwlock", "rates", A, count=3)
        assert "worker-2" in run("locks", "list", "--prefix", "rates").out
        shown = run("locks", "show", "rates").out.splitlines()
        assert [line.split()[1] for line in shown if "waiting for more" in line] == [f"{later(A)}:"]

    def test_a_circle_is_named(self) -> None:
        lock("next", B)
        waits("lock", "next", A)
        said = "web-1/4711/worker-2 holds lock next and waits for lock busy"
        for words in ([], ["list", "--kind", "semaphore"], ["cycles"], ["show", "busy"]):
            assert said in run("locks", *words).out
        assert json.loads(run("locks", "cycles", "--json").out)["cycles"][0]["said"].startswith("web-1/")
        assert "deadlock" not in run("locks", "show", "idle").out

    def test_why_explains_a_lock(self) -> None:
        for words in (
            ["lock", "busy"],
            ["semaphore", "busy"],
            ["rwlock", "catalogue"],
            ["condition", "orders"],
        ):
            shown = run("why", *words).out
            assert f"{words[0].replace('rwlock', 'read-write lock')} {words[1]}" in shown
        assert "Held by web-1/4711/worker-1; expires in" in run("why", "lock", "busy").out
        assert A in run("why", "catalogue").out or B in run("why", "catalogue").out
        assert run("why", "lock", "BUSY").code == 1
        for part in ("rwlock", "catalogue", "00c0ffee", "web-1/4711/worker-1"):
            assert part in run("why", "web-1/4711").out
        assert len(json.loads(run("why", "web-1/4711", "--json").out)["holds"]) == 5
        assert run("why", "nothing-at-all").code == 1


@pytest.mark.usefixtures("crowd", "history")
class TestFreeing:
    def test_all_permits_of_a_name_are_freed_and_no_other_ones(self) -> None:
        permits("semaphore", "busy2", [A])
        assert run("locks", "revoke", "busy", "--kind", "semaphore", "--reason", "x").code == 0
        held = SemaphorePermit.objects.held()
        assert set(held.filter(name="busy").values_list("holder", flat=True)) == {later(C)}
        assert held.filter(name="busy2").count() == 1

    @pytest.mark.parametrize("do", ["list", "show busy", "revoke busy --reason x"])
    def test_a_kind_that_there_is_not_is_told_which_there_are_as_they_are_typed(self, do: str) -> None:
        found = run("locks", *do.split(), "--kind", "mutex")
        assert "'lock', 'semaphore', 'rwlock'" in found.err
        assert "LockKind" not in found.err


@pytest.mark.usefixtures("crowd", "history")
class TestFreeingWhatOneHolderHas:
    def test_where_several_are_meant_it_asks_which(self) -> None:
        lock("elsewhere", "web-1/4712/MainThread/0a1b2c3d.5@1")
        found = run("locks", "revoke-holder", "web-1", "--reason", "x")
        assert (found.code, "web-1 matches several processes: 00c0ffee, 0a1b2c3d" in found.err) == (1, True)
        assert LockRow.objects.held().count() == 2

    @pytest.mark.parametrize("holder", ["web", "web-1/471", "deadbeef", "/", "%", "web-1/4711/x/deadbeef.1@1"])
    def test_nobody_else_is_meant(self, holder: str) -> None:
        found = run("locks", "revoke-holder", holder, "--reason", "x")
        assert (found.code, "holds anything" in found.err) == (1, True)
        assert LockRow.objects.get(pk="busy").holder == A


@pytest.mark.usefixtures("crowd", "history")
class TestResizing:
    def test_fewer_than_are_held_says_how_many_are_too_many(self) -> None:
        assert run("locks", "resize", "busy", "2", "--reason", "x").out == (
            "Semaphore busy was resized.\n1 above the new number are held until released.\n"
        )
        assert "More permits are held than exist now" in run("locks", "show", "busy").out
        assert run("locks", "resize", "idle", "0", "--reason", "x").code == 0
        assert "No permits: all requests wait" in run("locks", "show", "idle", "--kind", "semaphore").out

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["nothing", "3", "--reason", "x"], "no semaphore nothing"),
            (["catalogue", "3", "--reason", "x"], "no semaphore catalogue"),
            (["busy", "-1", "--reason", "x"], "-1"),
            (["busy", "10001", "--reason", "x"], "a whole number from 0 to 10000"),
            (["busy", "9" * 20, "--reason", "x"], "a whole number from 0 to 10000"),
            (["busy", "9" * 5_000, "--reason", "x"], "a whole number from 0 to 10000"),
            (["busy", "\u0664", "--reason", "x"], "a whole number from 0 to 10000"),
            (["busy", "3"], "--reason"),
        ],
    )
    def test_what_cannot_be_done_is_refused(self, words: list[str], said: str) -> None:
        found = run("locks", "resize", *words)
        assert (found.code != 0, said in found.err) == (True, True), found
        assert SemaphorePermit.objects.filter(in_service=True).count() == 6


def test_a_barrier_is_found_by_the_name_that_it_was_given_and_is_held_by_nobody() -> None:
    stands("import done", A)
    waits("barrier", "import done", B)
    assert run("locks").out.splitlines()[1].split() == [
        "barrier",
        "import",
        "done",
        "-",
        "blocking",
        "1",
        "40",
        "s",
    ]
    assert run("locks", "list", "--kind", "condition").out == "No names found.\n"
    for words in (("locks", "show", "import done"), ("why", "import done"), ("why", "barrier", "import done")):
        shown = run(*words).out
        assert shown.startswith("barrier import done\n"), words
        assert "waiters continue when it is removed" in shown
        assert "created by:" in shown
        assert "held" not in shown
        assert "36500" not in shown
    assert run("why", "barrier", "nothing").err == "no barrier named nothing\n"


def test_a_condition_tells_who_was_notified() -> None:
    permits("condition", "orders", ["", A])
    waits("condition", "orders", B)
    assert "1 notified" in run("locks").out
    shown = run("locks", "show", "orders").out
    assert "notified:" in shown
    assert A in shown
    assert "held" not in shown
