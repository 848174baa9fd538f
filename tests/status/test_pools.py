"""The status of the pools."""

import itertools
from typing import Any

import pytest

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.models import Proxy
from resourcepool.resources.state import State, Status, state_of
from resourcepool.status.resources.pools import in_state, pools
from tests.app.rows import new
from tests.waiting.threads import ticket

ROWS = list(
    itertools.product((True, False), (-60, 60), ("", "me"), (*Status.values,), (None, -60, 60)),
)


def row(in_service: bool, busy: int, holder: str, status: str, until: int | None) -> Any:
    return new(
        Proxy,
        in_service=in_service,
        busy_before=DbLater(busy),
        holder=holder,
        status=status,
        until=None if until is None else DbLater(until),
    )


def test_the_database_and_python_agree_on_the_state_of_every_row() -> None:
    for columns in ROWS:
        row(*columns)
    by_python = {one.pk: state_of(one, one.now) for one in Proxy.objects.annotate(now=DbNow())}
    by_database: dict[Any, State] = {}
    for state in State:
        for pk in Proxy.objects.filter(in_state(state)).values_list("pk", flat=True):
            assert pk not in by_database, f"{pk} is in two states"
            by_database[pk] = state
    assert by_database == by_python
    assert set(by_python.values()) == set(State)


def test_counts_each_once() -> None:
    for columns in ROWS:
        row(*columns)
    status = pools([Proxy])[0]
    assert status.total == len(ROWS)
    assert status.counts == {state: Proxy.objects.filter(in_state(state)).count() for state in State}


class TestAPool:
    def test_without_a_table_is_in_trouble_and_hides_nothing_of_the_others(self) -> None:
        ghost = next(one for one in pools() if one.label == "testapp.Ghost")
        assert "migrate" in ghost.error
        assert [one.error for one in pools() if one.label == "resourcepool.Proxy"] == [""]

    def test_that_is_empty(self) -> None:
        (status,) = [one for one in pools() if one.label == "resourcepool.Proxy"]
        assert (status.total, status.utilisation, status.next_free_in, status.oldest_check) == (
            0,
            0.0,
            None,
            None,
        )

    def test_in_use(self) -> None:
        new(Proxy)
        Proxy.pool.acquire(ttl=50)
        new(Proxy)
        Proxy.pool.acquire(ttl=40)
        for _ in range(2):
            new(Proxy)
        status = pools([Proxy])[0]
        assert status.utilisation == pytest.approx(0.5)
        assert 35 < (status.next_free_in or 0) <= 40
        assert not status.is_exhausted

    def test_with_nothing_left_says_who_waits_and_for_how_long(self) -> None:
        new(Proxy, in_service=False, status=Status.OUT_OF_SERVICE)
        ticket(Proxy, asked_at=DbLater(-30))
        ticket(Proxy, asked_at=DbLater(-10))
        ticket(Proxy, seconds=-1, asked_at=DbLater(-500))  # dead
        status = pools([Proxy])[0]
        assert status.is_exhausted
        assert status.waiters == 2
        assert 29 < status.oldest_wait < 60

    def test_with_a_dead_holder_counts_what_ran_out(self) -> None:
        new(Proxy, holder="dead", busy_before=DbLater(-5), fence=1)
        assert pools([Proxy])[0].expired == 1

    def test_tells_how_old_the_checks_are(self) -> None:
        new(Proxy)
        new(Proxy, checked_at=DbLater(-100), verdict="ok")
        new(Proxy, checked_at=DbLater(-200), verdict="bad")
        status = pools([Proxy])[0]
        assert (status.unchecked, status.bad) == (1, 1)
        assert 199 < (status.oldest_check or 0) < 260

    @pytest.mark.parametrize(
        ("free_since", "checked", "expected"),
        [(-900, -300, 300), (-300, -900, 300), (60, -900, None), (-900, None, None)],
    )
    def test_tells_for_how_long_checks_passed_over_what_was_free(
        self, free_since: int, checked: int | None, expected: int | None
    ) -> None:
        new(Proxy, busy_before=DbLater(-9), checked_at=DbLater(-9))
        new(
            Proxy,
            busy_before=DbLater(free_since),
            holder="me" if free_since > 0 else "",
            checked_at=None if checked is None else DbLater(checked),
        )
        new(Proxy, busy_before=DbLater(-5_000), checked_at=DbLater(-5_000), in_service=False)
        found = pools([Proxy])[0].passed_over or 0
        assert (expected or 9) - 1 < found < (expected or 9) + 60
