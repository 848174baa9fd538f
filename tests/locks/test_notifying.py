"""No notification is lost, none wakes two, and each wakes whoever has waited longest."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection, transaction

from resourcepool.exceptions import BadOption
from resourcepool.locks import Condition, Lock
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import ConditionWaiter, Ticket
from resourcepool.waiting import tickets
from tests.app.rows import change, expire
from tests.eventually import InBackground, eventually
from tests.locks.orders import NAME, condition, in_line, notify, wait, waiting


class TestNotifying:
    def test_the_first_who_waits_goes_on(self) -> None:
        first, second = waiting(2)
        assert notify() == 1
        assert first.result() is True
        assert second.is_alive()
        assert in_line() == 1
        assert notify() == 1
        assert second.result() is True
        assert not ConditionWaiter.objects.exists()

    def test_all_who_wait_go_on_and_nobody_who_comes_later(self) -> None:
        early = waiting(3)
        with condition():
            assert condition().notify_all() == 3
            assert in_line() == 0
        (late,) = waiting()
        assert [thread.result() for thread in early] == [True] * 3
        assert in_line() == 1
        assert late.is_alive()
        notify()
        assert late.result() is True

    def test_who_is_notified_goes_on_only_once_the_lock_is_free(self) -> None:
        (thread,) = waiting()
        with condition():
            condition().notify()
            eventually(Ticket.objects.filter(pool=f"resourcepool.lock:{NAME}").waiting().exists)
            assert thread.is_alive()
            assert ConditionWaiter.objects.count() == 1
        assert thread.result() is True

    def test_more_are_notified_than_fit_into_one_statement(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("resourcepool.locks.notifications.BATCH", 2)
        monkeypatch.setattr(tickets, "MAX_TICKETS", 3)
        threads = waiting(5)
        with condition():
            assert condition().notify_all() == 5
        assert all(thread.result() for thread in threads)

    def test_conditions_of_one_lock_are_told_apart_by_their_names(self) -> None:
        lock = Lock(NAME)
        with lock:
            assert Condition(lock, "full").notify_all() == 0
        (thread,) = waiting()
        with lock:
            assert Condition(lock, "full").notify_all() == 0
            assert Condition(lock).notify_all() == 1
        assert thread.result() is True

    def test_in_a_transaction_it_takes_effect_with_that(self) -> None:
        (thread,) = waiting()
        with condition():
            with pytest.raises(ZeroDivisionError), transaction.atomic():
                assert condition().notify() == 1
                raise ZeroDivisionError
            assert in_line() == 1
            with transaction.atomic():
                assert condition().notify() == 1
        assert thread.result() is True


class TestTimeouts:
    def test_it_returns_false_and_the_place_is_gone(self) -> None:
        assert wait(0.05) is False
        assert wait(0) is False
        assert in_line() == 0
        assert notify() == 0

    def test_wait_for_returns_what_its_predicate_says(self) -> None:
        with condition():
            assert condition().wait_for(lambda: 5) == 5
            assert condition().wait_for(list, timeout=0.05) == []
        state: list[int] = []

        def wait_for_three() -> list[int]:
            with condition():
                return condition().wait_for(lambda: state if len(state) == 3 else [])

        thread = InBackground(wait_for_three)
        for number in range(3):
            eventually(lambda: in_line() == 1)
            with condition():
                state.append(number)
                condition().notify()
        assert thread.result() == [0, 1, 2]

    @pytest.mark.parametrize("timeout", [-2, "1", float("nan"), True])
    def test_a_bad_timeout_is_refused(self, timeout: Any) -> None:
        with condition():
            for wait in (condition().wait, lambda one: condition().wait_for(bool, one)):
                with pytest.raises(BadOption, match="timeout="):
                    wait(timeout)


class TestTimedOutAgainstNotified:
    """One DELETE decides: every waiter returns False, or has had the notification, never both or neither."""

    @pytest.fixture
    def just_before(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Callable[[], object]]]:
        """What is done just before, or just after, the DELETE of somebody whose time is up."""
        do: dict[str, Callable[[], object]] = {}
        leave = tickets.leave

        def leave_then(*given: Any) -> bool:
            do.pop("before", lambda: None)()
            left = leave(*given)
            do.pop("after", lambda: None)()
            return left

        monkeypatch.setattr(tickets, "leave", leave_then)
        return do

    def test_notified_just_before_it_was_notified(self, just_before: dict[str, Any]) -> None:
        told: list[int] = []
        just_before["before"] = lambda: told.append(InBackground(notify).result())
        assert wait(0.05) is True
        assert told == [1]
        assert not ConditionWaiter.objects.exists()

    def test_notified_just_after_it_was_not_there_any_more(self, just_before: dict[str, Any]) -> None:
        told: list[int] = []
        just_before["after"] = lambda: told.append(InBackground(notify).result())
        assert wait(0.05) is False
        assert told == [0]

    def test_the_next_is_notified_when_the_first_was_late(self, just_before: dict[str, Any]) -> None:
        told: list[int] = []
        seconds: list[InBackground] = []

        def another_comes_and_one_is_notified() -> None:
            seconds.extend(waiting())
            # This thread polls for all of the process: ``notify`` must not have to wait for the lock.
            eventually(lambda: not LockRow.objects.held().exists())
            told.append(InBackground(notify).result())

        just_before["after"] = another_comes_and_one_is_notified
        assert wait(0.05) is False
        assert told == [1]
        assert seconds[0].result() is True

    def test_notified_in_a_transaction_that_commits_later_it_waits_for_that(
        self, just_before: dict[str, Any]
    ) -> None:
        if connection.vendor == "sqlite":
            pytest.skip("there nobody writes meanwhile")
        is_leaving, is_told = threading.Event(), threading.Event()
        just_before["before"] = lambda: (is_leaving.set(), is_told.wait(30))
        thread = InBackground(wait, 0.05)
        assert is_leaving.wait(30)
        with condition(), transaction.atomic():
            assert condition().notify() == 1
            is_told.set()
        assert thread.result() is True

    def test_an_interrupted_waiter_passes_it_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        first, second = waiting(2)
        acquire_again = Lock._acquire_again

        async def interrupted(self: Lock, *args: Any) -> None:
            await acquire_again(self, *args)
            if threading.current_thread() is first:
                raise KeyboardInterrupt

        monkeypatch.setattr(Lock, "_acquire_again", interrupted)
        notify()
        with pytest.raises(KeyboardInterrupt):
            first.result()
        assert second.result() is True


class TestPlacesInLine:
    def test_who_has_lost_the_place_wakes_up_for_it_may_have_been_passed_over(self) -> None:
        (thread,) = waiting()
        Ticket.objects.in_line_for(ConditionWaiter, NAME).delete()
        assert thread.result() is True

    def test_a_notification_that_lapsed_goes_to_the_next_and_the_first_wakes_up_too(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first, second = waiting(2)
        mine = Ticket.objects.in_line_for(ConditionWaiter, NAME).waiting().order_by("pk").first()
        seen_by, stands_still = tickets.look, threading.Event()

        def look(connection: Any, pks: Any) -> Any:
            found = seen_by(connection, [pk for pk in pks if pk != mine.pk] or [0])
            if mine.pk in pks:
                stands_still.set()
                found[mine.pk] = tickets.TicketState(1, (), True, 60.0)
            return found

        monkeypatch.setattr(tickets, "look", look)
        assert stands_still.wait(60), "from then on no earlier look can see what it is given"
        notify()
        row = ConditionWaiter.objects.get()
        assert row.holder == mine.holder
        expire(row)
        change(mine, busy_before=row.busy_before)
        expire(mine)
        assert second.result() is True
        monkeypatch.undo()
        assert first.result() is True

    def test_a_notification_left_by_a_dead_waiter_goes_to_who_waits(self) -> None:
        (thread,) = waiting()
        dead = ConditionWaiter.objects.create(key=ConditionWaiter.key_of(NAME, 0), name=NAME)
        assert thread.result() is True
        assert not ConditionWaiter.objects.filter(pk=dead.pk).exists()
