"""All waiters: oldest first, with their place in line, when their turn may come, and why they are not served."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from resourcepool.db.dialect import DbLater
from resourcepool.models import Proxy, Sample, Ticket
from resourcepool.resources.state import Status
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.resources import waiting
from resourcepool.status.resources.waiters import matching, why_not_served
from resourcepool.status.resources.waiting import Lines, Waiting, explain
from tests.app.models import Device
from tests.app.rows import hold, new, several
from tests.status.locks.conftest import A, B, C, later, lock, permits, stands, waits
from tests.waiting.threads import ticket

pytestmark = pytest.mark.django_db


def lines(of: str = "", *, models: Any = (Proxy, Device), kinds: Any = tuple(LockKind)) -> list[Waiting]:
    return [*Lines(models, kinds, of).page().waiters]


@pytest.mark.parametrize(
    ("count", "ahead", "soon", "there", "said"),
    [
        (1, 0, None, {}, "No resource matches its selectors."),
        (1, 0, None, {"out": 2, "retired": 1}, "No matching resource is in service (matching: 3)."),
        (5, 0, None, {"free": 2, "leased": 1}, "It wants 5 at once; matching resources in service: 3."),
        (1, 3, None, {"free": 2}, "Free matching resources: 2; waiters ahead of it: 3."),
        (
            1,
            0,
            None,
            {"free": 1},
            "Free matching resources: 1; it is served at once unless its process is stopped.",
        ),
        (
            *(2, 0, 30.0, {"free": 1, "leased": 2, "cooling": 1, "quarantined": 1}),
            (
                "Matching resources: 1 free, 2 leased, 2 cooling down or quarantined. The next is free in 30 s unless"
                " its lease is renewed."
            ),
        ),
    ],
)
def test_each_case_is_explained(
    count: int, ahead: int, soon: float | None, there: dict[str, int], said: str
) -> None:
    counts = {f"n_{state}": number for state, number in there.items()}
    assert why_not_served(count, ahead, {**counts, "n_next_free_in": soon}) == said


def test_what_matches_is_counted_by_state() -> None:
    hold(new(Proxy, country="US"), ttl=40)
    new(Proxy, country="US", in_service=False, status=Status.OUT_OF_SERVICE)
    new(Proxy, country="DE")
    counts = matching(Proxy, '{"country": "US"}')
    assert 30 < counts.pop("n_next_free_in") <= 40
    assert {state: number for state, number in counts.items() if number} == {"n_leased": 1, "n_out": 1}


@pytest.mark.parametrize("selector", ['{"colour": "red"}', "no json", "[1]", '{"port": {"a": 1}}'])
def test_a_selector_of_another_version_matches_nothing(selector: str) -> None:
    new(Proxy)
    ticket(Proxy, selector=selector)
    assert [one.why for one in lines()] == ["No resource matches its selectors."]


def test_the_waiters_of_a_holder_are_found() -> None:
    ticket(Proxy, holder="other", asked_at=DbLater(-50))
    ticket(Proxy, holder="me", selector='{"country": "US"}', asked_at=DbLater(-125))
    ticket(Device, holder="me")
    (one, _device) = Lines([Proxy, Device], ()).of_holders(["me"], 2)
    assert one.said == (
        "Waiting for proxies (country=US) for 2 min, number 2 in line. No resource matches its selectors."
    )
    assert len(Lines([Proxy, Device], ()).of_holders(["me"], 1)) == 1


def test_the_oldest_comes_first_whatever_it_waits_for() -> None:
    lock("orders", A)
    ticket(Proxy, holder="young", asked_at=DbLater(-5))
    waits("lock", "orders", B, waited=60)
    ticket(Device, holder="old", asked_at=DbLater(-600))
    assert [one.holder for one in lines()] == ["old", later(B), "young"]
    assert [one.what for one in lines()] == ["devices", "lock orders", "proxies"]
    assert 600 <= lines()[0].waited < 700


def test_a_place_is_by_priority_and_then_by_arrival_in_its_own_line() -> None:
    first, second = (ticket(Proxy, asked_at=DbLater(-ago)) for ago in (50, 40))
    urgent = ticket(Proxy, priority=-1, asked_at=DbLater(-1))
    other = ticket(Device, asked_at=DbLater(-30))
    places = {one.ticket: one.place for one in lines()}
    assert places == {urgent.pk: 1, first.pk: 2, second.pk: 3, other.pk: 1}


def test_it_says_what_is_wanted_and_why_it_is_not_served() -> None:
    new(Proxy, country="de")
    ticket(Proxy, selector='{"country": "AQ"}', count=2)
    (one,) = lines()
    assert one.wants == "country=AQ, 2 at once"
    assert one.why == "No resource matches its selectors."
    assert one.expected is None


def test_a_turn_is_expected_by_the_leases_of_the_last_15_minutes() -> None:
    hold(new(Proxy))
    for ago in (90, 150):
        Sample.objects.create(pool="resourcepool.proxy", minute=DbLater(-ago), acquired=6)
    Sample.objects.create(pool="resourcepool.proxy", minute=DbLater(-1_000), acquired=600)
    ticket(Proxy, asked_at=DbLater(-9))
    ticket(Proxy, asked_at=DbLater(-8))
    assert [one.expected for one in lines()] == pytest.approx([10, 20])


def test_a_waiter_for_a_lock_reads_who_holds_it() -> None:
    lock("orders", A)
    waits("lock", "orders", B)
    (one,) = lines()
    assert one.why.startswith("Held by web-1/4711/worker-1; expires in ")
    assert one.model is LockKind.LOCK.model
    assert one.key == "orders"


def test_a_free_lock_and_a_condition_explain_themselves() -> None:
    lock("orders")
    waits("lock", "orders", B, waited=60)
    waits("condition", "imports", C, waited=50)
    permits("semaphore", "licence", [A, ""])
    waits("semaphore", "licence", B, count=2, waited=40)
    stands("import", A)
    waits("barrier", "import", B, waited=30)
    of_lock, of_condition, of_semaphore, of_barrier = lines()
    assert of_lock.why == "Permits are free: the first waiter gets them in a moment, or needs more than these."
    assert of_condition.why == "Waiters block until notify() is called."
    assert of_barrier.why == "Barrier is up; waiters continue when it is removed."
    assert of_semaphore.key == "licence#0"
    assert of_semaphore.wants == "2 at once"


@pytest.mark.parametrize(("of", "count"), [("resourcepool.Proxy", 1), ("lock orders", 1), ("lock", 0), ("", 2)])
def test_one_line_alone_is_shown_on_request(of: str, count: int) -> None:
    ticket(Proxy)
    waits("lock", "orders", B)
    assert len(lines(of)) == count


def test_only_lines_of_visible_models_are_shown() -> None:
    ticket(Proxy)
    ticket(Device)
    waits("lock", "orders", B)
    assert [one.what for one in lines(models=[Device], kinds=())] == ["devices"]
    assert lines("resourcepool.Proxy", models=[Device]) == []
    assert lines("lock orders", kinds=[LockKind.SEMAPHORE]) == []


def test_served_and_dead_waiters_are_left_out() -> None:
    ticket(Proxy, is_waiting=False)
    ticket(Proxy, seconds=-1)
    assert lines() == []


def test_a_ticket_explains_itself() -> None:
    hold(new(Proxy))
    ticket(Proxy)
    assert "number 2 in line. Matching resources: 0 free" in explain(ticket(Proxy))
    lock("orders", A)
    assert "number 1 in line. Held by web-1/4711/worker-1;" in explain(waits("lock", "orders", B))
    assert explain(ticket(Proxy, seconds=-1)) == ""
    assert explain(new(Ticket, busy_before=DbLater(60), holder="stranger", fence=1)) == ""


def test_pages_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PER_PAGE", 2)
    tickets = [ticket(Proxy, asked_at=DbLater(-ago)).pk for ago in (30, 20, 10)]
    pages = [Lines([Proxy], ()).page(number) for number in (1, 2, 3)]
    assert [[one.ticket for one in page.waiters] for page in pages] == [tickets[:2], tickets[2:], []]
    assert [page.has_more for page in pages] == [True, False, False]
    assert pages[0].total == 3


def test_a_page_of_one_pool_costs_a_fixed_number_of_queries() -> None:
    several(Proxy, 3)

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            lines()
        return len(queries)

    ticket(Proxy)
    one = cost()
    for _number in range(20):
        ticket(Proxy)
    assert cost() == one <= 6
