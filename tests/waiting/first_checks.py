"""The looks that somebody who waits has itself, and one who waits."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from resourcepool.models import Proxy
from resourcepool.threads.signal_safe_event import SignalSafeEvent
from resourcepool.waiting import estimates, tickets
from resourcepool.waiting.estimates import WaitEstimate
from resourcepool.waiting.ticket_wakeups import ticket_wakeups
from tests.eventually import InBackground, eventually

HERE = threading.current_thread().name
LONG = 30.0  # seconds, which no test waits


class CheckRecorder:
    """Who looked, one name of a thread for each look; ``do`` is done before the next one."""

    def __init__(self, look: Callable[..., Any]) -> None:
        self.by: list[str] = []
        self.do: Callable[[], object] = lambda: None
        self._look = look

    def __call__(self, *args: Any) -> Any:
        self.by.append(threading.current_thread().name)
        do, self.do = self.do, lambda: None
        do()
        return self._look(*args)

    def raising(self, error: BaseException, *before: Callable[[], object]) -> None:
        """Do this before the next look, and have it fail then."""

        def fail() -> None:
            for do in before:
                do()
            raise error

        self.do = fail


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> CheckRecorder:
    """Who waits looks itself until it is served, on a slow machine too."""
    monkeypatch.setattr(estimates, "FIRST_SCAN_DELAY", LONG)
    checks = CheckRecorder(tickets.look)
    monkeypatch.setattr(tickets, "look", checks)
    return checks


def waiting(**wishes: Any) -> InBackground:
    """Start somebody who waits; return once it sleeps until its first look."""
    one = InBackground(lambda: Proxy.pool.acquire(**{"timeout": 60, "holder": "me", **wishes}))
    eventually(asleep)
    return one


def asleep() -> bool:
    """Whether somebody in this process waits for a notice itself."""
    return any(isinstance(bell, SignalSafeEvent) for bell in list(ticket_wakeups._tickets.values()))


@pytest.fixture
def distant_first_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WaitEstimate, "first_check_delay", lambda *_: LONG)


@pytest.fixture
def forgotten_tickets(removed_at_once: None) -> Iterator[None]:
    ticket_wakeups._tickets.clear()
    yield
    eventually(lambda: not ticket_wakeups._tickets, because=lambda: f"not forgotten: {ticket_wakeups._tickets}")


def request(**wishes: Any) -> Any:
    return Proxy.pool.request(1, {"timeout": 60, "holder": "me", **wishes})
