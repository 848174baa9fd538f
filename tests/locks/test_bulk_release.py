"""``release_all``: everything that one process holds."""

from functools import partial
from typing import Any

import pytest

from resourcepool.db.dialect import DbLater
from resourcepool.exceptions import BadOption, NotHeld
from resourcepool.history.recorder import recorder
from resourcepool.leases.keeper import keeper
from resourcepool.locks import Lock, RWLock, Semaphore, release_all
from resourcepool.locks.bulk_release import revoke_holders
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import Event, RWLockPermit, SemaphorePermit, Ticket
from tests.app.rows import change, columns
from tests.eventually import InBackground, eventually
from tests.spawned import Spawner

STRANGER = "far/7/MainThread/0a1b2c3d.12@3"


def held_by(holder: str, seconds: float = 60) -> list[Any]:
    """Let ``holder`` have one row of each kind."""
    fields: dict[str, Any] = {"holder": holder, "busy_before": DbLater(seconds)}
    return [
        LockRow.objects.create(name="report", **fields),
        SemaphorePermit.objects.create(key="seats#0", name="seats", **fields),
        SemaphorePermit.objects.create(key="seats#1", name="seats", **fields),
        RWLockPermit.objects.create(key="book#0", name="book", **fields),
    ]


def holders(rows: list[Any]) -> set[str]:
    return {columns(row)["holder"] for row in rows}


def hold_until_told() -> None:
    assert Lock("report", ttl=3).acquire()
    hold: Any = Semaphore("seats", 3, ttl=3).acquire(n=2)
    print(hold.holder, flush=True)
    hold.lost.wait(40)
    print("lost", flush=True)


class TestOfThisProcess:
    def test_all_of_all_threads_and_nothing_else(self) -> None:
        theirs = held_by(STRANGER)
        lock, seats = Lock("mine"), Semaphore("chairs", 5)
        held = [lock.acquire(), seats.acquire(n=3), InBackground(seats.acquire).result()]
        assert release_all() == 5
        assert not any(one.is_held for one in held if one)
        assert (seats.available(), lock.locked()) == (5, False)
        assert holders(theirs) == {STRANGER}
        assert release_all() == 0

    def test_what_another_thread_releases_meanwhile_keeps_nothing_of_the_rest(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seats, found = Semaphore("seats", 3), keeper.unreleased
        first, *others = [seats.acquire() for _ in range(3)]

        def found_just_before() -> list[Any]:
            leases = found()
            assert first
            first.leases[0].release()
            return leases

        with monkeypatch.context() as patched:
            patched.setattr(keeper, "unreleased", found_just_before)
            assert release_all() == 3
        assert seats.available() == 3
        assert not any(one.is_held for one in others if one)

    def test_a_lock_that_was_lost_and_is_held_by_another_thread_is_released_there_too(self) -> None:
        Lock("mine").acquire()
        change(LockRow.objects.get(), busy_before=DbLater(-1))
        again = InBackground(Lock("mine").acquire).result()
        assert again
        assert release_all() == 1
        assert not Lock("mine").locked()

    @pytest.mark.parametrize("one", [Lock("mine"), Semaphore("seats")], ids=repr)
    def test_an_open_block_says_at_its_end_that_it_has_nothing_to_release(self, one: Any) -> None:
        with pytest.raises(NotHeld), one:
            release_all()

    def test_an_open_block_does_not_release_what_another_thread_acquired_meanwhile(self) -> None:
        seats = Semaphore("seats", 2)
        with pytest.raises(NotHeld), seats:
            release_all()
            theirs = InBackground(seats.acquire).result()
        assert theirs
        assert theirs.is_held

    @pytest.mark.parametrize("side", [Lock("mine"), RWLock("mine", readers=2).write()], ids=repr)
    def test_another_thread_that_waited_holds_what_it_gets_and_releases_it(self, side: Any) -> None:
        def take() -> bool:
            with side:
                return bool(side.owned())

        side.acquire()
        waits = InBackground(take)
        eventually(Ticket.objects.waiting().exists)
        release_all()
        assert waits.result() is True
        assert side.acquire(blocking=False) is not None


class TestOfAnother:
    @pytest.mark.parametrize("asked", [STRANGER, "0a1b2c3d", "elsewhere/1/x/0a1b2c3d.99@1"])
    def test_whichever_of_its_requests_is_named(self, asked: str) -> None:
        rows = held_by(STRANGER)
        before = [columns(row)["fence"] for row in rows]
        Lock("mine").acquire()
        assert release_all(asked) == 4
        assert holders(rows) == {""}
        assert [columns(row)["fence"] for row in rows] == [fence + 1 for fence in before]
        assert Lock("mine").owned()

    @pytest.mark.parametrize("other", ["far/7/x/1a1b2c3d.12@3", "0a1b2c3d", "/0a1b2c3d.9/far/x/aaaaaaaa.1@1"])
    def test_not_those_of_others(self, other: str) -> None:
        rows = held_by(other)
        assert release_all(STRANGER) == 0
        assert holders(rows) == {other}

    def test_what_has_expired_is_not_counted(self) -> None:
        held_by(STRANGER, seconds=-1)
        assert release_all(STRANGER) == 0

    def test_they_go_to_those_who_wait(self) -> None:
        held_by(STRANGER)
        waits = InBackground(lambda: Semaphore("seats", 2).acquire(n=2))
        eventually(Ticket.objects.waiting().exists)
        release_all(STRANGER)
        assert len(waits.result().leases) == 2

    @pytest.mark.parametrize("holder", ["", "me", "host/1/thread", "0A1B2C3D", "%", 5, "a/b/c/%.1"])
    def test_what_tells_no_process_is_refused(self, holder: Any) -> None:
        with pytest.raises(BadOption, match="holder="):
            release_all(holder)

    @pytest.mark.parametrize("asked", [None, 5, "two\nlines", "x" * 201], ids=repr)
    @pytest.mark.parametrize("option", ["reason", "actor"])
    def test_a_reason_and_an_actor_are_lines_of_text(self, option: str, asked: Any) -> None:
        rows = held_by(STRANGER)
        for release in (partial(release_all, STRANGER), release_all):
            with pytest.raises(BadOption, match=f"{option}="):
                release(**{option: asked})
        assert holders(rows) == {STRANGER}

    def test_the_history_says_who_did_it(self, settings: Any) -> None:
        settings.RESOURCEPOOL = {"HISTORY": True}
        held_by(STRANGER)
        release_all(STRANGER, reason="hung", actor="anna")
        recorder.flush()
        told = Event.objects.filter(what="revoked").values_list("holder", "actor", "reason")
        assert set(told) == {(STRANGER, "anna", "hung")}

    def test_the_history_says_who_did_it_to_the_operators_own_process(self, settings: Any) -> None:
        settings.RESOURCEPOOL = {"HISTORY": True}
        mine = Lock("report").acquire().holder
        Semaphore("seats", 2).acquire(n=2)
        assert release_all(mine, reason="a drill", actor="zoe") == 3
        Lock("report").acquire()
        assert release_all() == 1  # that is no act of an operator
        recorder.flush()
        told = Event.objects.filter(what="revoked", actor="zoe").values_list("row", "reason")
        assert sorted(told) == [(row, "a drill") for row in ("report", "seats#0", "seats#1")]

    def test_a_living_process_finds_out(self, spawn: Spawner) -> None:
        child = spawn(hold_until_told)
        holder = child.line("/")
        assert release_all(holder) == 3
        assert child.line("lost")


def test_freeing_the_holders_of_a_name_spares_a_process_that_waits_for_the_rest_of_it() -> None:
    """It has got some of the permits so far: it is not what hangs, and what else it holds is in use."""
    waiter, until = "near/8/MainThread/deadbeef.4@1", DbLater(60)
    held_by(STRANGER)
    RWLockPermit.objects.create(key="book#1", name="book", holder=waiter, busy_before=until)
    LockRow.objects.create(name="other", holder=waiter.replace(".4@", ".3@"), busy_before=until)
    line = {"pool": "resourcepool.rwlockpermit:book", "selector": "book", "count": 2}
    Ticket.objects.create(**line, holder=waiter, busy_before=until, asked_at=DbLater(-1))
    assert revoke_holders(RWLockPermit.objects.filter(name="book"), "it hangs") == 1
    assert set(LockRow.objects.held().values_list("name", flat=True)) == {"other"}
    assert not SemaphorePermit.objects.held().exists()
    assert set(RWLockPermit.objects.held().values_list("holder", flat=True)) == {waiter}
