"""A thread that polls and is blocked by its database does not delay waiters on another one."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import override_settings

from resourcepool.exceptions import AcquireTimeout
from resourcepool.models import Proxy
from resourcepool.waiting import tickets
from tests.aliases import alias
from tests.app.models import Device
from tests.app.rows import hold, new, several
from tests.concurrency.tickets import in_line
from tests.eventually import InBackground, eventually
from tests.waiting.threads import Waiting

STUCK = "stands_still"  # another name of the same database

Release = Callable[[], Any]


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch, waiting: Waiting) -> Iterator[Release]:
    """A waiter whose database hangs until this is called; then returns its lease."""
    look, hangs, goes_on = tickets.look, threading.Event(), threading.Event()

    def hang(connection: Any, *args: Any) -> Any:
        if connection.alias == STUCK:
            hangs.set()
            goes_on.wait(30)
        return look(connection, *args)

    def release() -> Any:
        goes_on.set()
        held.release()
        return waiting.let_go("stuck")

    held = hold(new(Device))
    with alias(STUCK):
        monkeypatch.setattr(tickets, "look", hang)
        waiting.start("stuck", Device.pool)
        assert hangs.wait(20)
        with override_settings(DATABASE_ROUTERS=[]):
            yield release
        goes_on.set()


def test_a_hanging_database_does_not_delay_waiters_of_another(stuck: Release) -> None:
    held = [hold(row) for row in several(Proxy, 2)]
    waiter = InBackground(lambda: Proxy.pool.acquire_many(2, timeout=30, holder="works"))
    eventually(lambda: "works" in in_line())
    for lease in held:
        lease.release()
    assert len(waiter.result(20)) == 2
    assert "stuck" in in_line()
    assert stuck().holder == "stuck"


def test_a_hanging_database_does_not_keep_tickets_of_left_waiters_on_another(stuck: Release) -> None:
    for row in several(Proxy, 2):
        hold(row)
    with pytest.raises(AcquireTimeout):
        Proxy.pool.acquire_many(2, timeout=0.1, holder="leaves")
    eventually(lambda: in_line() == ["stuck"])
    stuck()
