"""Whoever had to wait a moment ago goes straight to the line; without a crowd nobody does."""

from typing import Any

import pytest

from resourcepool.leases import clock
from resourcepool.models import Proxy
from resourcepool.resources.crowd import Crowd
from tests.app.rows import hold, new
from tests.committed import Clock, Statement
from tests.eventually import InBackground, eventually

pytestmark = pytest.mark.usefixtures("transactional_db")


class Served:
    """A waiter that is through."""

    def __init__(self, had_to_wait: bool) -> None:
        self.had_to_wait = had_to_wait


def test_a_wait_is_remembered_for_a_moment(process_clock: Clock) -> None:
    crowd: Any = Crowd()
    assert not crowd.is_likely()
    crowd.served(Served(had_to_wait=True), clock.monotonic() - 1)
    assert crowd.is_likely()
    process_clock.advance(Crowd.LATELY + 0.01)
    assert not crowd.is_likely()


def test_being_served_by_the_first_look_ends_it() -> None:
    crowd: Any = Crowd()
    crowd.served(Served(had_to_wait=True), clock.monotonic() - 1)
    crowd.served(Served(had_to_wait=False), clock.monotonic())
    assert not crowd.is_likely()


def test_whoever_comes_after_a_wait_rests_for_half_of_it_at_most_before_it_looks() -> None:
    crowd: Any = Crowd()
    assert crowd.rest(60) == 0
    crowd.served(Served(had_to_wait=True), clock.monotonic() - 0.02)
    assert 0.01 <= crowd.rest(60) <= Crowd.REST
    crowd.served(Served(had_to_wait=True), clock.monotonic() - 20)
    assert crowd.rest(60) == Crowd.REST
    assert crowd.rest(0.5) == 0, "it would give up too soon"


def test_after_a_wait_the_line_serves_at_once_what_is_free(statements: list[Statement]) -> None:
    held = hold(new(Proxy))
    waiter = InBackground(lambda: Proxy.pool.acquire(timeout=20))
    eventually(lambda: Proxy.pool._desk._model and [one for one in statements if one.sql.startswith("INSERT")])
    held.release()
    waiter.result().release()
    lease: Any = Proxy.pool.acquire(timeout=20)
    lease.release()
    statements.clear()
    lease = Proxy.pool.acquire(timeout=20)
    assert [one for one in statements if one.sql.startswith("INSERT")] == [], "the crowd has gone"
    lease.release()
