"""The choice among free resources."""

import threading
from collections import Counter
from typing import Any

import pytest
from django.db import connection

from resourcepool.db.dialect import DbLater
from resourcepool.db.dialect.statement import ANY_ROW
from resourcepool.models import Proxy
from resourcepool.resources import source
from tests.app.rows import change, expire, granted, hold, new, several
from tests.eventually import in_threads


def offered(chosen: str = "spread", count: int = 1) -> list[int]:
    """Return free rows in the order of this strategy."""
    return source.choose(connection, Proxy, ANY_ROW, Proxy.pool.request(count, {"strategy": chosen}))


class TestSticky:
    @pytest.mark.parametrize("before", ["sticky", "random"])
    def test_returns_what_the_thread_had_last(self, before: Any) -> None:
        several(Proxy, 20)
        with Proxy.pool.lease(strategy=before) as first:
            pass
        for _ in range(10):
            with Proxy.pool.lease(strategy="sticky") as again:
                assert again.pk == first.pk

    @pytest.mark.parametrize(
        "meanwhile",
        [
            lambda lease: granted(lease.resource, "somebody else"),
            lambda lease: Proxy.objects.filter(pk=lease.pk).drain("broken"),
        ],
        ids=["held", "out of service"],
    )
    def test_takes_another_one_while_that_is_not_free(self, meanwhile: Any) -> None:
        several(Proxy, 3)
        first = Proxy.pool.acquire(strategy="sticky")
        first.release()
        meanwhile(first)
        assert Proxy.pool.acquire(strategy="sticky", wait=False).pk != first.pk

    def test_takes_another_one_when_that_does_not_match(self) -> None:
        us, de = new(Proxy, country="US"), new(Proxy, country="DE")
        Proxy.pool.acquire(strategy="sticky", country="US").release()
        with Proxy.pool.lease(strategy="sticky", country="DE", timeout=1) as lease:
            assert lease.pk == de.pk
        with Proxy.pool.lease(strategy="sticky", country="US", timeout=1) as lease:
            assert lease.pk == us.pk

    def test_remembers_for_each_thread(self) -> None:
        several(Proxy, 20)
        all_have_one = threading.Barrier(4)

        def several_times() -> set[int]:
            first = Proxy.pool.acquire(strategy="sticky")
            all_have_one.wait(10)  # from here on each thread keeps its row
            first.release()
            seen = {first.pk}
            for _ in range(3):
                with Proxy.pool.lease(strategy="sticky") as lease:
                    seen.add(lease.pk)
            return seen

        assert [len(seen) for seen in in_threads([several_times] * 4)] == [1] * 4

    def test_remembers_for_each_name_that_the_caller_gives(self) -> None:
        several(Proxy, 20)
        had = {}
        for name in "abc":
            lease = Proxy.pool.acquire(strategy="sticky", holder=name)
            had[name] = lease
        for lease in had.values():
            lease.release()
        for name in "abc":
            assert Proxy.pool.acquire(strategy="sticky", holder=name).pk == had[name].pk


class TestSpread:
    def test_prefers_what_has_been_idle_longest(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(source, "SPREAD_OVER", 4)
        rows = several(Proxy, 12)
        for age, row in enumerate(rows):
            change(row, busy_before=DbLater(-1_000 + age))
        idle = {row.pk for row in rows[:4]}
        for _ in range(10):
            lease = Proxy.pool.acquire(strategy="spread")
            assert lease.pk in idle
            lease.release()
            change(lease.resource, busy_before=DbLater(-2_000))

    def test_does_not_always_take_the_first(self) -> None:
        """If all processes try the same row, all but one lose."""
        rows = several(Proxy, 4)
        assert {offered()[0] for _ in range(100)} == {row.pk for row in rows}

    def test_offers_as_many_as_are_wanted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(source, "SPREAD_OVER", 4)
        several(Proxy, 20)
        assert len(offered()) == 4
        assert len(offered(count=15)) == 15

    def test_offers_only_what_is_free(self) -> None:
        free, held, out = several(Proxy, 3)
        hold(held)
        Proxy.objects.filter(pk=out.pk).drain("broken")
        assert offered() == [free.pk]
        expire(held)
        assert set(offered()) == {free.pk, held.pk}


class TestRandom:
    def test_chooses_by_weight(self) -> None:
        light, heavy = new(Proxy, weight=1), new(Proxy, weight=9)
        firsts = Counter(offered("random")[0] for _ in range(400))
        # 360 expected, standard deviation 6
        assert 320 < firsts[heavy.pk] < 395
        assert firsts[light.pk] == 400 - firsts[heavy.pk]

    def test_offers_every_free_row_once(self) -> None:
        rows = several(Proxy, 30)
        assert sorted(offered("random")) == [row.pk for row in rows]

    def test_is_not_upset_by_a_weight_of_zero(self) -> None:
        row = new(Proxy, weight=0)
        assert Proxy.pool.acquire(strategy="random", wait=False).pk == row.pk


@pytest.mark.parametrize("name", ["sticky", "spread", "random"])
def test_whichever_it_is_the_last_free_resource_is_found(name: str) -> None:
    rows = several(Proxy, 30)
    for row in rows[1:]:
        hold(row)
    assert Proxy.pool.acquire(strategy=name, wait=False).pk == rows[0].pk
