"""A release skips the query for waiters if its process has just found none."""

from collections.abc import Iterator

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from resourcepool import dialect
from resourcepool.models import Proxy
from resourcepool.waiting import handover
from resourcepool.waiting.estimates import (
    FIRST_SCAN_DELAY,
    LAST_CHECK_BEFORE_TIMEOUT,
    MIN_FIRST_CHECK,
    NO_WAITER_TTL,
    REMEMBERED_FOR,
    NoWaiterCache,
    no_waiter_cache,
)
from resourcepool.waiting.models import pool_name
from resourcepool.waiting.waiter_loop import WaiterLoop
from tests.app.rows import columns, hold, new, steal
from tests.committed import Clock
from tests.waiting.loop_turns import join, leases, look
from tests.waiting.threads import given, ticket

POOL = "proxies", "default"


class TestItIsRemembered:
    def test_for_a_moment(self, process_clock: Clock) -> None:
        memory = NoWaiterCache()
        assert not memory.is_valid(*POOL)
        memory.note_no_waiter(*POOL, process_clock())
        assert memory.is_valid(*POOL)
        process_clock.advance(NO_WAITER_TTL + 0.001)
        assert not memory.is_valid(*POOL)

    def test_from_when_it_was_asked(self, process_clock: Clock) -> None:
        memory, asked_at = NoWaiterCache(), process_clock()
        process_clock.advance(NO_WAITER_TTL + 0.001)
        memory.note_no_waiter(*POOL, asked_at)
        assert not memory.is_valid(*POOL)

    def test_for_each_pool_on_each_database(self, process_clock: Clock) -> None:
        memory = NoWaiterCache()
        memory.note_no_waiter(*POOL, process_clock())
        assert not memory.is_valid("proxies", "another")
        assert not memory.is_valid("devices", "default")

    def test_not_after_a_recent_wait(self, process_clock: Clock) -> None:
        memory = NoWaiterCache()
        memory.note_no_waiter(*POOL, process_clock())
        memory.note_waiter(*POOL)
        assert not memory.is_valid(*POOL)
        process_clock.advance(REMEMBERED_FOR - 0.1)
        memory.note_no_waiter(*POOL, process_clock())
        assert not memory.is_valid(*POOL)
        process_clock.advance(0.2)
        memory.note_no_waiter(*POOL, process_clock())
        assert memory.is_valid(*POOL)

    def test_not_if_a_waiter_arrived_after_the_query(self, process_clock: Clock) -> None:
        memory, asked_at = NoWaiterCache(), process_clock()
        memory.note_waiter(*POOL)
        memory.note_no_waiter(*POOL, asked_at)
        assert not memory.is_valid(*POOL)

    def test_of_a_limited_number_of_lines(self, process_clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("resourcepool.waiting.estimates.MAX_REMEMBERED_LINES", 2)
        memory = NoWaiterCache()
        for name in "abc":
            memory.note_no_waiter(name, "default", process_clock())
        assert [name for name in "abc" if memory.is_valid(name, "default")] == ["c"]


@pytest.fixture(autouse=True)
def _stopped(process_clock: Clock) -> None:
    process_clock.stop()


@pytest.fixture(autouse=True)
def _asking_is_dear(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on databases with a server."""
    monkeypatch.setattr(dialect.of(connection), "exists_is_slow", True)
    handover._texts.cache_clear()
    yield
    handover._texts.cache_clear()


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> NoWaiterCache:
    """The cache of the releasing process; the waiters belong to other processes."""
    memory = NoWaiterCache()
    monkeypatch.setattr(handover, "no_waiter_cache", memory)
    return memory


@pytest.mark.usefixtures("by_name")  # elsewhere texts are sent
class TestARelease:
    def quiet(self, here: NoWaiterCache, process_clock: Clock) -> None:
        here.note_no_waiter(pool_name(Proxy), "default", process_clock())

    def test_queries_once_per_interval(self, process_clock: Clock) -> None:
        rows = [hold(new(Proxy)) for _ in range(3)]
        with CaptureQueriesContext(connection) as sent:
            rows[0].release()
            rows[1].release()
            process_clock.advance(NO_WAITER_TTL + 0.001)
            rows[2].release()
        asked = ["EXISTS" in query["sql"] for query in sent if "UPDATE" in query["sql"]]
        assert asked == [True, False, True]

    def test_without_a_query_leaves_its_row_to_the_first_scan_of_a_waiter(
        self, line: WaiterLoop, here: NoWaiterCache, process_clock: Clock
    ) -> None:
        row = new(Proxy)
        held = hold(row)
        self.quiet(here, process_clock)
        waiter = join(line)
        held.release()
        assert columns(row)["holder"] == ""
        process_clock.advance(MIN_FIRST_CHECK + FIRST_SCAN_DELAY + 0.001)
        look(line)  # gives it to the ticket,
        look(line)  # and finds it there
        assert leases(waiter)[0].pk == row.pk

    def test_without_a_query_leaves_its_row_to_a_waiter_with_a_short_timeout(
        self, line: WaiterLoop, here: NoWaiterCache, process_clock: Clock
    ) -> None:
        held = hold(new(Proxy))
        self.quiet(here, process_clock)
        waiter = join(line, timeout=0.04)
        held.release()
        process_clock.advance(0.04 - LAST_CHECK_BEFORE_TIMEOUT + 0.001)
        look(line)
        look(line)
        assert leases(waiter)[0].pk == held.pk

    def test_without_a_query_is_found_as_soon_after_a_waiter_with_less_time(
        self, line: WaiterLoop, here: NoWaiterCache, process_clock: Clock
    ) -> None:
        held = hold(new(Proxy))
        self.quiet(here, process_clock)
        waiter = join(line)
        join(line, timeout=0.02, priority=1)
        process_clock.advance(0.02 - LAST_CHECK_BEFORE_TIMEOUT + 0.001)
        look(line)
        held.release()
        process_clock.advance(MIN_FIRST_CHECK + FIRST_SCAN_DELAY - 0.02 + LAST_CHECK_BEFORE_TIMEOUT)
        look(line)
        look(line)
        assert leases(waiter)[0].pk == held.pk

    def test_is_not_kept_from_a_waiter_for_longer_than_it_does_not_ask(self) -> None:
        assert MIN_FIRST_CHECK + FIRST_SCAN_DELAY > NO_WAITER_TTL

    def test_queries_again_as_soon_as_its_process_waits(self, line: WaiterLoop, process_clock: Clock) -> None:
        held = hold(new(Proxy))
        no_waiter_cache.note_no_waiter(pool_name(Proxy), "default", process_clock())
        waiter = join(line)
        held.release()
        look(line)
        assert leases(waiter)[0].pk == held.pk

    def test_queries_each_time_after_a_wait(self, here: NoWaiterCache, process_clock: Clock) -> None:
        rows = [hold(new(Proxy)) for _ in range(3)]
        first = ticket(Proxy)
        rows[0].release()
        assert given(first)
        rows[1].release()
        assert not here.is_valid(pool_name(Proxy), "default")
        second = ticket(Proxy)
        rows[2].release()
        assert given(second)

    def test_of_a_row_out_of_service_does_not_fill_the_cache(self, here: NoWaiterCache) -> None:
        broken, row = new(Proxy), new(Proxy)
        mine = hold(broken), hold(row)
        Proxy.objects.filter(pk__in=[one.pk for one in mine][:1]).drain("broken")
        waits = ticket(Proxy)
        mine[0].release()
        assert not here.is_valid(pool_name(Proxy), "default")
        mine[1].release()
        assert given(waits)

    def test_without_a_query_reports_a_lost_row(self, here: NoWaiterCache, process_clock: Clock) -> None:
        row = new(Proxy)
        held = hold(row)
        steal(row)
        before = columns(row)
        self.quiet(here, process_clock)
        assert not handover.release(connection, Proxy, held.pk, held.fence)
        assert columns(row) == before

    @pytest.mark.only("sqlite")
    def test_queries_each_time_if_that_costs_nothing(
        self, here: NoWaiterCache, process_clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delattr(dialect.of(connection), "exists_is_slow")
        handover._texts.cache_clear()
        held = hold(new(Proxy))
        self.quiet(here, process_clock)
        waits = ticket(Proxy)
        held.release()
        assert given(waits)
