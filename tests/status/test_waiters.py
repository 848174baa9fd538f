"""The waiters: what each wants, who is ahead, and why it is not served."""

from typing import Any

import pytest

from resourcepool.db.dialect import DbLater
from resourcepool.models import Proxy
from resourcepool.resources.state import State, Status
from resourcepool.status.resources.waiters import WaiterStatus, waiters_of
from tests.app.models import Device
from tests.app.rows import hold, new
from tests.waiting.threads import ticket


def case(*, count: int = 1, ahead: int = 0, soon: float | None = None, **there: int) -> WaiterStatus:
    matching = {state: there.get(state.value, 0) for state in State}
    return WaiterStatus(1, "app.thing", "me", {}, count, 0, 5.0, ahead, [], matching, soon)


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (case(), "No resource matches its selectors."),
        (case(out=2, retired=1, draining=1), "No matching resource is in service (matching: 4)."),
        (case(count=5, free=2, leased=1), "It wants 5 at once; matching resources in service: 3."),
        (case(free=2, ahead=3), "Free matching resources: 2; waiters ahead of it: 3."),
        (case(free=1), "Free matching resources: 1; it is served at once"),
        (
            case(leased=1, soon=30.0),
            "Matching resources: 0 free, 1 leased, 0 cooling down or quarantined.",
        ),
        (case(leased=2, quarantined=1), "0 free, 2 leased, 1 cooling down or quarantined."),
        (case(leased=2, soon=30.0), "The next is free in 30 s unless its lease is renewed."),
        (case(count=2, free=1, leased=1), "1 free, 1 leased"),
    ],
)
def test_each_case_is_explained(one: WaiterStatus, said: str) -> None:
    assert said in one.explanation


def waits(model: Any = Proxy, holder: str = "me") -> WaiterStatus:
    (one,) = waiters_of(model, holder)
    return one


class TestAPlace:
    def test_counts_who_is_served_before_by_priority_and_arrival(self) -> None:
        ticket(Proxy, holder="early")
        ticket(Proxy, holder="late but urgent", priority=-1)
        ticket(Proxy, holder="me", asked_at=DbLater(-42))
        ticket(Proxy, holder="urgent", priority=-5)
        ticket(Proxy, holder="behind")
        ticket(Proxy, holder="dead", priority=-9, seconds=-1)
        ticket(Proxy, holder="served", priority=-9, is_waiting=False, granted="[[1, 2]]")
        ticket(Device, holder="another line", priority=-9)
        one = waits()
        assert one.ahead == 3
        assert [place.holder for place in one.in_front] == ["urgent", "late but urgent", "early"]
        assert 41 < one.waited < 90

    def test_shows_only_the_first_in_front(self) -> None:
        for number in range(9):
            ticket(Proxy, holder=f"number {number}")
        ticket(Proxy, holder="me")
        one = waits()
        assert one.ahead == 9
        assert [place.holder for place in one.in_front] == [f"number {number}" for number in range(5)]

    def test_knows_what_matches_and_in_what_state_it_is(self) -> None:
        hold(new(Proxy, country="US"), ttl=40)
        new(Proxy, country="US", in_service=False, status=Status.OUT_OF_SERVICE)
        new(Proxy, country="DE")
        ticket(Proxy, holder="me", selector='{"country": "US"}')
        one = waits()
        assert {state: number for state, number in one.matching.items() if number} == {
            State.LEASED: 1,
            State.OUT: 1,
        }
        assert 30 < (one.next_free_in or 0) <= 40
        assert one.wants == {"country": "US"}

    @pytest.mark.parametrize("selector", ['{"colour": "red"}', "no json", "[1]", '{"port": {"a": 1}}'])
    def test_whose_wish_another_version_wrote_matches_nothing(self, selector: str) -> None:
        new(Proxy)
        ticket(Proxy, holder="me", selector=selector)
        assert waits().explanation == "No resource matches its selectors."
