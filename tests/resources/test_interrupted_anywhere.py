"""A signal handler raises at any line between the call of ``acquire`` and the ``with`` block.

A lease that was granted by then, and a ticket, is not renewed: it comes free by itself. Nothing hangs afterwards.
"""

import contextlib
import gc
from collections.abc import Callable
from typing import Any

import pytest

from resourcepool import Resource
from resourcepool.exceptions import AcquireTimeout, LeaseReleased
from resourcepool.leases.keeper import keeper
from resourcepool.leases.models import long_ago
from resourcepool.models import Proxy, Ticket
from resourcepool.waiting import tickets, turn
from resourcepool.waiting.poll import poller_on
from tests.app.rows import hold, several
from tests.case_sample import EVERY
from tests.eventually import InBackground
from tests.interruptions import at_each_line, end


class Crawler(Resource):
    """Any proxy will do."""

    model = Proxy
    acquire_timeout = 5

    def is_valid(self) -> bool:
        return True


def got(acquire: Callable[[], Any]) -> None:
    """Acquire and release handles."""
    had = acquire()
    end()
    for lease in had if isinstance(had, list) else [had]:
        lease.release()


def entered(block: Callable[[], Any]) -> None:
    """Enter a ``with`` block."""
    with block():
        end()


def crawling() -> None:
    crawler = Crawler()
    end()
    crawler.close()


def timing_out() -> None:
    held: Any = Proxy.pool.acquire_many(2)
    try:
        with pytest.raises(AcquireTimeout):
            Proxy.pool.acquire(timeout=0.001)
    finally:
        end()
        for lease in held:
            lease.release()


FREE: dict[str, Callable[[], object]] = {
    "one": lambda: got(lambda: Proxy.pool.acquire(timeout=5)),
    "one without waiting": lambda: got(lambda: Proxy.pool.acquire(wait=False)),
    "a block": lambda: entered(Proxy.pool.lease),
    "several": lambda: got(lambda: Proxy.pool.acquire_many(2, timeout=5)),
    "a Resource": crawling,
}

AWAITED: dict[str, Callable[[], object]] = {name: FREE[name] for name in ("a block", "several")}


# Python only prints exceptions raised while it closes an abandoned generator.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module", autouse=True)
def _earlier_objects_are_no_garbage() -> None:
    """``check`` collects garbage after each case, and need not look through what all tests before have left."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def rows(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    monkeypatch.setattr(turn, "USED_BATCH", 1)  # remove tickets of served waiters at once
    return several(Proxy, 2)


def check(place: str) -> None:
    """Assert that nothing renews what the interruption at ``place`` left behind, and let it expire."""
    gc.collect()  # exceptions refer to frames, which refer to handles
    keeper._report_leaks("default")
    assert keeper.leases() == [], place
    for lease in keeper.unreleased():  # expire it before the next case
        keeper.remove(lease)
    assert all(waiter.is_done for waiter in poller_on("default").turns.waiters), place
    Ticket.objects.update(busy_before=long_ago())
    Proxy.objects.update(busy_before=long_ago())
    InBackground(lambda: got(lambda: Proxy.pool.acquire_many(2, timeout=5))).result()


@pytest.mark.parametrize("way", FREE)
def test_while_it_gets_what_is_free(way: str) -> None:
    places = []
    for place in at_each_line(FREE[way], every=EVERY):
        places.append(place)
        check(place)
    assert len(places) * EVERY > 50


def test_while_it_gives_up() -> None:
    for place in at_each_line(timing_out, since=["_too_late"], every=EVERY):
        check(place)


def test_while_it_takes_up_what_was_handed_over() -> None:
    passed_on: list[tuple[Any, int]] = []

    def pass_on() -> None:
        lease: Any = Proxy.pool.acquire()
        passed_on.append((lease.pk, lease.hand_over("heir")))

    for place in at_each_line(lambda: got(lambda: Proxy.pool.adopt(*passed_on[-1])), pass_on, every=EVERY):
        check(place)


@pytest.mark.parametrize("way", AWAITED)
def test_while_it_waits_and_is_served(way: str, monkeypatch: pytest.MonkeyPatch, rows: list[Any]) -> None:
    take, held = tickets.take, []

    def released_meanwhile(*args: Any) -> Any:
        taken = take(*args)
        InBackground(lambda: [lease.release() for lease in held]).result()
        return taken

    monkeypatch.setattr(tickets, "take", released_meanwhile)

    def hold_all() -> None:
        held[:] = [hold(row) for row in rows]

    for place in at_each_line(AWAITED[way], hold_all, every=EVERY):
        for lease in held:
            with contextlib.suppress(LeaseReleased):
                lease.release()
        held.clear()
        check(place)
