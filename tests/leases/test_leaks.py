"""Leaked leases are reported, with the line that acquired them."""

import logging
from typing import Any

import pytest

from resourcepool.leases.keeper import keeper, unreferenced
from resourcepool.models import Proxy
from tests.app.rows import new
from tests.committed import Clock
from tests.eventually import eventually
from tests.waiting.threads import waiting

__all__ = ["waiting"]


@pytest.fixture
def proxy() -> Any:
    return new(Proxy)


def reports(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "leaked" in record.getMessage()]


def test_a_handle_that_nobody_has_any_more_is_reported_once_and_still_renewed(
    proxy: Any, process_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "resourcepool"):
        forget_one()
        while not reports(
            caplog
        ):  # whoever looks at all leases just then has the handle, too: a beat later nobody has
            pass_a_beat(process_clock)
        for _ in range(3):
            pass_a_beat(process_clock)
    (told,) = reports(caplog)
    assert "no code refers to its handle, acquired at " in told
    assert "test_leaks.py" in told
    assert told.endswith(" in forget_one")


def pass_a_beat(clock: Clock) -> None:
    """Let time pass until every lease is due, and wait until all are renewed."""
    clock.advance(25)
    eventually(lambda: all(lease._trust.due_at > clock() for lease in keeper.leases()))


def forget_one() -> None:
    Proxy.pool.acquire(ttl=60)


def test_what_somebody_still_has_is_not_reported(
    proxy: Any, process_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    somewhere = {"deep": [Proxy.pool.acquire(ttl=60)]}
    pass_a_beat(process_clock)
    with Proxy.pool.lease(ttl=60) if new(Proxy) else None:  # type: ignore[union-attr]
        pass_a_beat(process_clock)
    assert reports(caplog) == []
    somewhere["deep"][0].release()  # type: ignore[union-attr]


def test_what_is_held_for_longer_than_leak_after_is_reported_once(
    proxy: Any, settings: Any, process_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "LEAK_AFTER": 100}
    lease: Any = Proxy.pool.acquire(ttl=60)
    pass_a_beat(process_clock)
    assert reports(caplog) == []
    for _ in range(4):
        pass_a_beat(process_clock)
    (told,) = reports(caplog)
    assert f"fence {lease.fence} may be leaked: held for more than 100 s, acquired at " in told
    assert lease.is_held
    lease.release()


def test_only_what_nothing_else_refers_to_counts_as_forgotten() -> None:
    kept: dict[Any, None] = {Something(): None, Something(): None, Something(): None}
    mine = list(kept)[1]
    assert [one is mine for one in kept] == [False, True, False]
    found = unreferenced(list(kept))
    assert len(found) == 2
    assert mine not in found


class Something:
    pass


def test_tickets_are_nobodys_leak(caplog: pytest.LogCaptureFixture, waiting: Any) -> None:
    held: Any = Proxy.pool.acquire() if new(Proxy) else None
    waiting.start("one")
    keeper._report_leaks("default")
    assert reports(caplog) == []
    held.release()
    waiting.let_go("one")
