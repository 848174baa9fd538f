"""Helpers for the first checks, which a waiting caller makes in its own thread."""

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
    """Records the name of the thread of each check; ``do`` runs before the next one."""

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
        """Run these before the next check, then let it fail."""

        def fail() -> None:
            for do in before:
                do()
            raise error

        self.do = fail


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> CheckRecorder:
    """Callers check in their own thread until they are served, also on a slow machine."""
    monkeypatch.setattr(estimates, "FIRST_SCAN_DELAY", LONG)
    checks = CheckRecorder(tickets.look)
    monkeypatch.setattr(tickets, "look", checks)
    return checks


def waiting(**wishes: Any) -> InBackground:
    """Start a waiting caller; return once it sleeps until its first check."""
    one = InBackground(lambda: Proxy.pool.acquire(**{"timeout": 60, "holder": "me", **wishes}))
    eventually(asleep)
    return one


def asleep() -> bool:
    """Whether a caller of this process waits for a wake-up in its own thread."""
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
