"""Real processes that wait in line."""

import signal
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from resourcepool.exceptions import LeaseLost
from resourcepool.models import Proxy
from tests.app.rows import columns, new
from tests.concurrency.evidence import Event, Log
from tests.concurrency.judge import judge
from tests.concurrency.tickets import in_line, lapse_after
from tests.eventually import eventually
from tests.spawned import Child, Spawner

# Long enough that no ticket is renewed during a test: a release skips a ticket that is being renewed.
LONG = 60.0
SHORT = 1.5  # for tickets that must expire
HOLD = 0.05


def wait_for_turn(folder: str, name: str, wishes: dict[str, Any], ticket_ttl: float) -> None:
    """Wait in line when the test starts it, and hold the lease briefly."""
    lapse_after(ticket_ttl)
    log = Log(Path(folder, "log"))
    print("ready", flush=True)
    eventually(Path(folder, name).exists)
    while not hold_for_a_moment(log, name, wishes):
        pass  # this machine was so slow that the short life of its ticket was over by then


def hold_for_a_moment(log: Log, name: str, wishes: dict[str, Any]) -> bool:
    """Wait in line, and hold the lease; False: it ended before that could be recorded."""
    is_noted = False
    try:
        with Proxy.pool.lease(timeout=40, holder=name, **wishes) as lease:
            log.note("acquired", lease)
            is_noted = True
            time.sleep(HOLD)
            log.note("releasing", lease)
    except LeaseLost:
        if is_noted:
            raise
    return is_noted


class Queue:
    """Starts waiters, lets them join one by one, and returns the order of service."""

    def __init__(self, spawn: Spawner, folder: Path) -> None:
        self._spawn, self._folder = spawn, folder
        self.children: dict[str, Child] = {}

    def start(self, *, lapsing: Collection[str] = (), **wishes: dict[str, Any]) -> None:
        """Start one process for each name, ready to join.

        Args:
            lapsing: the names whose tickets expire soon after a kill or pause.
        """
        for name, wish in wishes.items():
            given = (str(self._folder), name, wish, SHORT if name in lapsing else LONG)
            self.children[name] = self._spawn(wait_for_turn, *given)
        for name in wishes:
            self.children[name].line("ready")

    def join(self, *names: str) -> None:
        """Let them join in this order, each after the previous one has its ticket."""
        for name in names:
            (self._folder / name).touch()
            eventually(lambda name=name: name in in_line())

    def served(self) -> list[str]:
        """Wait until all live processes have ended; return their names in the order of service."""
        for child in self.children.values():
            assert child.wait() in (0, -9), child.output
        names = {child.pid: name for name, child in self.children.items()}
        return [names[event.pid] for event in self.acquired()]

    def acquired(self) -> list[Event]:
        return [event for event in self.events() if event.what == "acquired"]

    def events(self) -> list[Event]:
        log = Log(self._folder / "log")
        try:
            return log.events()
        finally:
            log.close()


@pytest.fixture
def queue(spawn: Spawner, tmp_path: Path) -> Queue:
    return Queue(spawn, tmp_path)


def test_six_processes_are_served_in_order_without_a_killed_one(queue: Queue) -> None:
    new(Proxy)
    names = ["first", "second", "third", "fourth", "fifth", "sixth"]
    queue.start(lapsing=["third"], **{name: {} for name in names})
    with Proxy.pool.lease():
        queue.join(*names)
        assert in_line() == names
        queue.children["third"].kill()
    assert queue.served() == ["first", "second", "fourth", "fifth", "sixth"]
    assert judge(queue.events()).overlaps == []


def test_a_paused_waiter_does_not_trust_an_expired_row(queue: Queue) -> None:
    """When the ticket expires, the row goes to the next waiter; the paused one takes a new ticket when it continues."""
    row = new(Proxy)
    queue.start(lapsing=["sleeper"], sleeper={}, second={}, third={})
    with Proxy.pool.lease():
        queue.join("sleeper", "second", "third")
        queue.children["sleeper"].send(signal.SIGSTOP)
    assert columns(row)["holder"] == "sleeper"
    eventually(lambda: len(queue.acquired()) == 2)
    queue.children["sleeper"].send(signal.SIGCONT)
    assert queue.served() == ["second", "third", "sleeper"]
    assert judge(queue.events()).overlaps == []


def test_a_caller_that_does_not_wait_never_overtakes(queue: Queue) -> None:
    new(Proxy)
    names = ["first", "second", "third", "fourth"]
    queue.start(**{name: {} for name in names})
    with Proxy.pool.lease():
        queue.join(*names)
    overtook = []
    while waiting := in_line():
        if (lease := Proxy.pool.acquire(wait=False)) is not None:
            overtook += in_line()  # empty, if the last waiter has left meanwhile
            lease.release()
        assert set(waiting) <= set(names)
    assert overtook == []
    assert queue.served() == names
