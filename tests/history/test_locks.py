"""What the history has of locks: their lasting grants, and the short ones where it was asked for."""

from typing import Any

import pytest

from resourcepool.history.recorder import recorder
from resourcepool.locks import Condition, Lock, RWLock, Semaphore
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import Event
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.lock_status import LockStatus, lock_named, locks

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("history")]


def events() -> list[tuple[str, str]]:
    recorder.flush()
    return list(Event.objects.order_by("pk").values_list("row", "what"))


def hold(lock: Any) -> None:
    """Hold it for so long that its acquisition is written first."""
    with lock:
        recorder.flush()


def status(name: str, kind: LockKind = LockKind.LOCK) -> LockStatus:
    recorder.flush()
    (one,) = lock_named(name, kind)
    return one


def test_a_lasting_grant_has_an_event_of_its_beginning_and_of_its_end() -> None:
    hold(Lock("report"))
    assert events() == [("report", "acquired"), ("report", "released")]
    first, last = Event.objects.order_by("pk")
    assert first.fence == last.fence
    assert last.seconds is not None


def test_of_permits_each_has_its_events() -> None:
    with Semaphore("imports", 2), RWLock("catalogue", readers=2).write():
        assert sorted(events())[:2] == [("catalogue#0", "acquired"), ("catalogue#1", "acquired")]
        assert len(events()) == 3


def test_a_short_grant_is_left_out_unless_the_settings_of_its_kind_ask_for_it(settings: Any) -> None:
    with Lock("report"):
        pass
    assert events() == []
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "POOLS": {LockRow._meta.label: {"history": True}}}
    with Lock("report"):
        pass
    assert events() == [("report", "released")]
    assert Event.objects.get().is_whole


def test_without_a_history_nothing_is_recorded(settings: Any) -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HISTORY": False}
    hold(Lock("report"))
    assert events() == []


def test_notified_waiters_are_no_holders() -> None:
    condition = Condition(Lock("queue"))
    with condition:
        recorder.flush()
        condition.wait(0.01)
    assert {row for row, _what in events()} == {"queue"}


class TestStatus:
    def test_it_says_since_when_a_lock_is_held_and_by_whom_before(self) -> None:
        hold(Lock("report"))
        before = Event.objects.get(what="acquired").holder
        with Lock("report") as held:
            one = status("report")
            assert [(by.holder, by.held is not None) for by in one.holders] == [(held.holder, True)]
            assert one.before is not None
            assert (one.before.holder, one.before.what) == (before, "released")

    def test_it_names_nobody_if_the_last_grant_is_not_in_the_history(self) -> None:
        hold(Lock("report"))
        with Lock("report"):
            pass
        assert status("report").before is None

    def test_of_a_free_lock_it_says_who_had_it_last(self) -> None:
        hold(Lock("report"))
        before = status("report").before
        assert before is not None
        assert before.what == "released"

    def test_of_permits_it_says_since_when_each_request_has_them(self) -> None:
        held = Semaphore("imports", 3).acquire(n=2)
        assert held is not None
        with held:
            (by,) = status("imports", LockKind.SEMAPHORE).holders
            assert by.permits == 2
            assert by.held is not None

    def test_a_page_of_names_says_it_for_each(self) -> None:
        for name in "abc":
            hold(Lock(name))
        with Lock("b"):
            recorder.flush()
            assert [one.before is not None for one in locks().locks] == [True, True, True]
