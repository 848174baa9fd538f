"""The looks that somebody who waits has itself, and one who waits."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from resourcepool.models import Proxy
from resourcepool.threads.bell import Bell
from resourcepool.waiting import contention, tickets
from resourcepool.waiting.contention import Speed
from resourcepool.waiting.notices import notices
from tests.eventually import InBackground, eventually

HERE = threading.current_thread().name
LONG = 30.0  # seconds, which no test waits


class Looks:
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
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    """Who waits looks itself until it is served, on a slow machine too."""
    monkeypatch.setattr(contention, "SOON", LONG)
    looks = Looks(tickets.look)
    monkeypatch.setattr(tickets, "look", looks)
    return looks


def waiting(**wishes: Any) -> InBackground:
    """Start somebody who waits; return once it sleeps until its first look."""
    one = InBackground(lambda: Proxy.pool.acquire(**{"timeout": 60, "holder": "me", **wishes}))
    eventually(asleep)
    return one


def asleep() -> bool:
    """Whether somebody in this process waits for a notice itself."""
    return any(isinstance(bell, Bell) for bell in list(notices._tickets.values()))


@pytest.fixture
def the_first_look_is_far_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Speed, "first_pause", lambda *_: LONG)


@pytest.fixture
def every_ticket_is_forgotten(removed_at_once: None) -> Iterator[None]:
    notices._tickets.clear()
    yield
    eventually(lambda: not notices._tickets, because=lambda: f"not forgotten: {notices._tickets}")


def request(**wishes: Any) -> Any:
    return Proxy.pool.request(1, {"timeout": 60, "holder": "me", **wishes})
