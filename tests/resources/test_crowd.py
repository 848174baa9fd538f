"""Whoever had to wait a moment ago goes straight to the line; without a crowd nobody does."""

from typing import Any

import pytest

from resourcepool.models import Proxy
from resourcepool.resources.desk import Crowd
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
    crowd.served(Served(had_to_wait=True))
    assert crowd.is_likely()
    process_clock.advance(Crowd.LATELY + 0.01)
    assert not crowd.is_likely()


def test_being_served_by_the_first_look_ends_it() -> None:
    crowd: Any = Crowd()
    crowd.served(Served(had_to_wait=True))
    crowd.served(Served(had_to_wait=False))
    assert not crowd.is_likely()


def test_after_a_wait_the_line_serves_at_once_what_is_free(statements: list[Statement]) -> None:
    held = hold(new(Proxy))
    waiter = InBackground(lambda: Proxy.pool.acquire(timeout=20))
    eventually(lambda: Proxy.pool._desk._model and [one for one in statements if one.sql.startswith("INSERT")])
    held.release()
    waiter.result().release()
    lease: Any = Proxy.pool.acquire(timeout=0.5)
    lease.release()
    statements.clear()
    lease = Proxy.pool.acquire(timeout=20)
    assert [one for one in statements if one.sql.startswith("INSERT")] == [], "the crowd has gone"
    lease.release()
