"""Waiters in threads of this process, and tickets of others."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.apps.registry import Apps

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.exceptions import AcquireTimeout
from resourcepool.models import Proxy, Ticket
from resourcepool.waiting import poll, turn
from resourcepool.waiting.models import pool_name
from tests.app.rows import columns, new
from tests.committed import Clock
from tests.concurrency.tickets import in_line
from tests.eventually import InBackground, eventually


class Chosen(Proxy):
    """The same rows under another name; not registered, or every page would show another pool."""

    class Meta(Proxy.Meta):
        abstract = False
        proxy = True
        app_label = "resourcepool"
        apps = Apps()


class Waiting:
    """Starts waiters and records the order of service; each holds its lease until ``let_go``."""

    def __init__(self) -> None:
        self.served: list[str] = []
        self._threads: dict[str, InBackground] = {}
        self._leases: dict[str, Any] = {}

    def start(self, name: str, pool: Any = Proxy.pool, **wishes: Any) -> None:
        """Start a waiter; return once it has a ticket."""

        def wait() -> None:
            self._leases[name] = pool.acquire(**{"timeout": 20, "holder": name, **wishes})
            self.served.append(name)

        self._threads[name] = InBackground(wait)
        eventually(lambda: name in in_line())

    def let_go(self, name: str) -> Any:
        """Wait until this waiter is served, then release its lease."""
        self._threads[name].result()
        self._leases[name].release()
        return self._leases[name]


def all_have_tickets() -> bool:
    """Whether this process has waiters, and all of them have a ticket."""
    those = [waiter for line in list(poll._pollers.values()) for waiter in list(line.turns.waiters)]
    return bool(those) and all(waiter.ticket is not None for waiter in those)


def too_late(
    clock: Clock, wait: Callable[[], Any], is_time: Callable[[], object] = all_have_tickets
) -> AcquireTimeout:
    """Return the error of ``wait``, which waits for 20 s; the clock moves that far once ``is_time()``."""
    waiter = InBackground(wait)
    eventually(is_time)
    clock.advance(20)
    with pytest.raises(AcquireTimeout) as caught:
        waiter.result()
    return caught.value


def let_pass(seconds: float) -> None:
    """Move the clock of the running event loop."""
    loop = asyncio.get_running_loop()
    usual = loop.time
    setattr(loop, "time", lambda: usual() + seconds)  # noqa: B010 (a method)


@pytest.fixture
def waiting() -> Waiting:
    return Waiting()


@pytest.fixture
def removed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tickets of served waiters are removed at once, not in batches."""
    monkeypatch.setattr(turn, "USED_BATCH", 1)


def ticket(model: Any, seconds: float = 30, **fields: Any) -> Ticket:
    """Insert the ticket of a stranger that does nothing."""
    fields = {"asked_at": DbNow(), "fence": 1, "holder": "stranger", **fields}
    return new(Ticket, pool=pool_name(model), busy_before=DbLater(seconds), **fields)


def given(ticket: Ticket) -> list[tuple[Any, int]]:
    """Return the rows that this ticket has been given, with their fences."""
    row = columns(ticket)
    return [(pk, fence) for pk, fence in json.loads(row["granted"] if ticket.count == 1 else row["collected"])]
