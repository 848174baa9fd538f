"""A release does not ask for waiters if its process has just found none."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from resourcepool.db import dialect
from resourcepool.models import Proxy
from resourcepool.waiting import handover, release as releases
from resourcepool.waiting.models import pool_name
from resourcepool.waiting.pacing import EMPTY_FOR, SHORTEST, Pacing, pacing_of
from resourcepool.waiting.poll import Poller
from resourcepool.waiting.release import release_once
from resourcepool.waiting.waiter import LAST_LOOK
from tests.app.rows import columns, hold, new, steal
from tests.committed import Clock
from tests.waiting.loop_turns import join, leases, look
from tests.waiting.threads import given, ticket


@pytest.fixture(autouse=True)
def _stopped(process_clock: Clock) -> None:
    process_clock.stop()


@pytest.fixture(autouse=True)
def _asking_is_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on databases with a server."""
    monkeypatch.setattr(dialect.of(connection), "exists_is_slow", True)
    compose_anew(monkeypatch)


def compose_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the SQL composed for what the database can do now."""
    monkeypatch.setattr(handover, "of", dialect.cached_per_database(handover._Texts))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Pacing:
    """What the releasing process knows of the line; the waiters belong to other processes."""
    known = Pacing()
    for module in (releases, handover):
        monkeypatch.setattr(module, "pacing_of", lambda *_: known)
    return known


@pytest.mark.usefixtures("by_name")  # elsewhere texts are sent
class TestARelease:
    def quiet(self, here: Pacing, process_clock: Clock) -> None:
        here.found_none(process_clock())

    def test_queries_once_per_interval(self, process_clock: Clock) -> None:
        rows = [hold(new(Proxy)) for _ in range(3)]
        with CaptureQueriesContext(connection) as sent:
            rows[0].release()
            rows[1].release()
            process_clock.advance(EMPTY_FOR + 0.001)
            rows[2].release()
        asked = ["EXISTS" in query["sql"] for query in sent if "UPDATE" in query["sql"]]
        assert asked == [True, False, True]

    def test_without_a_query_leaves_its_row_to_the_first_scan_of_a_waiter(
        self, line: Poller, here: Pacing, process_clock: Clock
    ) -> None:
        row = new(Proxy)
        held = hold(row)
        self.quiet(here, process_clock)
        waiter = join(line)
        held.release()
        assert columns(row)["holder"] == ""
        process_clock.advance(SHORTEST + EMPTY_FOR + SHORTEST + 0.001)
        look(line)  # gives it to the ticket,
        look(line)  # and finds it there
        assert leases(waiter)[0].pk == row.pk

    def test_without_a_query_leaves_its_row_to_a_waiter_with_a_short_timeout(
        self, line: Poller, here: Pacing, process_clock: Clock
    ) -> None:
        held = hold(new(Proxy))
        self.quiet(here, process_clock)
        waiter = join(line, timeout=0.04)
        held.release()
        process_clock.advance(0.04 - LAST_LOOK + 0.001)
        look(line)
        look(line)
        assert leases(waiter)[0].pk == held.pk

    def test_without_a_query_is_found_as_soon_after_a_waiter_with_less_time(
        self, line: Poller, here: Pacing, process_clock: Clock
    ) -> None:
        held = hold(new(Proxy))
        self.quiet(here, process_clock)
        waiter = join(line)
        join(line, timeout=0.02, priority=1)
        process_clock.advance(0.02 - LAST_LOOK + 0.001)
        look(line)
        held.release()
        process_clock.advance(SHORTEST + EMPTY_FOR + SHORTEST - 0.02 + LAST_LOOK)
        look(line)
        look(line)
        assert leases(waiter)[0].pk == held.pk

    def test_is_not_kept_from_a_waiter_for_longer_than_it_does_not_ask(self) -> None:
        assert SHORTEST + EMPTY_FOR + SHORTEST > EMPTY_FOR

    def test_queries_again_as_soon_as_its_process_waits(self, line: Poller, process_clock: Clock) -> None:
        held = hold(new(Proxy))
        pacing_of(pool_name(Proxy), "default").found_none(process_clock())
        waiter = join(line)
        held.release()
        look(line)
        assert leases(waiter)[0].pk == held.pk

    def test_queries_each_time_after_a_wait(self, here: Pacing, process_clock: Clock) -> None:
        rows = [hold(new(Proxy)) for _ in range(3)]
        first = ticket(Proxy)
        rows[0].release()
        assert given(first)
        rows[1].release()
        assert here.empty_until < process_clock()
        second = ticket(Proxy)
        rows[2].release()
        assert given(second)

    def test_of_a_row_out_of_service_does_not_count_as_asking(self, here: Pacing, process_clock: Clock) -> None:
        broken, row = new(Proxy), new(Proxy)
        mine = hold(broken), hold(row)
        Proxy.objects.filter(pk__in=[one.pk for one in mine][:1]).drain("broken")
        waits = ticket(Proxy)
        mine[0].release()
        assert here.empty_until < process_clock()
        mine[1].release()
        assert given(waits)

    def test_without_a_query_reports_a_lost_row(self, here: Pacing, process_clock: Clock) -> None:
        row = new(Proxy)
        held = hold(row)
        steal(row)
        before = columns(row)
        self.quiet(here, process_clock)
        assert not release_once(connection, Proxy, held.pk, held.fence)
        assert columns(row) == before

    @pytest.mark.only("sqlite")
    def test_queries_each_time_if_that_costs_nothing(
        self, here: Pacing, process_clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delattr(dialect.of(connection), "exists_is_slow")
        compose_anew(monkeypatch)
        held = hold(new(Proxy))
        self.quiet(here, process_clock)
        waits = ticket(Proxy)
        held.release()
        assert given(waits)
