"""Records who looks at tickets."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from resourcepool.models import Proxy
from resourcepool.waiting import tickets
from resourcepool.waiting.pacing import Pacing
from resourcepool.waiting.poll import poller_on
from tests.eventually import InBackground, eventually

HERE = threading.current_thread().name
BACKGROUND = "resourcepool-waiters-default"
LONG = 30.0  # seconds, which no test waits


class Looks:
    """The name of the thread of each look; ``do`` runs before the next one."""

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
        """Run these before the next look, then let it fail."""

        def fail() -> None:
            for do in before:
                do()
            raise error

        self.do = fail


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    looks = Looks(tickets.look)
    monkeypatch.setattr(tickets, "look", looks)
    return looks


@pytest.fixture
def distant_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first look comes so late that only a wake-up helps."""
    monkeypatch.setattr(Pacing, "first_look", lambda *_: LONG)
    monkeypatch.setattr(Pacing, "second_scan", lambda *_: LONG)


def waiting(**wishes: Any) -> InBackground:
    """Start a waiting caller; return once it waits in line."""
    before = len(poller_on("default").turns.waiters)
    one = InBackground(lambda: Proxy.pool.acquire(**{"timeout": 60, "holder": "me", **wishes}))
    eventually(lambda: len(poller_on("default").turns.waiters) > before)
    return one


def request(**wishes: Any) -> Any:
    return Proxy.pool.request(1, {"timeout": 60, "holder": "me", **wishes})
