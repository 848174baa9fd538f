"""The line in which real processes wait when nothing is free."""

import itertools
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from resourcepool.dialect import DbNow
from resourcepool.leases import lying
from resourcepool.models import Proxy, Ticket
from tests.app.rows import new
from tests.concurrency.evidence import Event, Log
from tests.concurrency.judge import judge
from tests.concurrency.tickets import in_line, lapse_after
from tests.eventually import eventually
from tests.spawned import Child, Spawner

TICKET_TTL = 1.5
HOLD = 0.05
UNHURRIED = (2.0, 1.0)  # seconds of patience: a living process that this machine holds up is not taken for dead


def wait_for_turn(
    folder: str, name: str, wishes: dict[str, Any], ticket_ttl: float, patience: tuple[float, float]
) -> None:
    """Stand in line as soon as the test says so, and hold what comes for a moment."""
    lapse_after(ticket_ttl)
    lying.PATIENCE, lying.STEP = patience
    log = Log(Path(folder, "log"))
    print("ready", flush=True)
    eventually(Path(folder, name).exists, within=30)
    with Proxy.pool.lease(timeout=40, holder=name, **wishes) as lease:
        log.note("acquired", lease)
        time.sleep(HOLD)
        log.note("releasing", lease)


class Queue:
    """Starts waiters, has them join one by one, and tells in which order they were served."""

    def __init__(self, spawn: Spawner, folder: Path) -> None:
        self._spawn, self._folder = spawn, folder
        self.children: dict[str, Child] = {}
        self.ticket_ttl = TICKET_TTL
        self.patience = UNHURRIED

    def start(self, **wishes: dict[str, Any]) -> None:
        """Start one process for each name; they are quick to join afterwards."""
        for name, wish in wishes.items():
            given = (str(self._folder), name, wish, self.ticket_ttl, self.patience)
            self.children[name] = self._spawn(wait_for_turn, *given)
        for name in wishes:
            self.children[name].line("ready")

    def join(self, *names: str) -> None:
        """Let them join in this order, each after the one before has got its ticket."""
        for name in names:
            (self._folder / name).touch()
            eventually(lambda name=name: name in in_line(), within=10)

    def served(self, *, within: float) -> list[str]:
        """Wait until all who live have ended; return their names in the order of service."""
        for child in self.children.values():
            assert child.wait(within) in (0, -9), child.output
        names = {child.pid: name for name, child in self.children.items()}
        return [names[event.pid] for event in self.events() if event.what == "acquired"]

    def events(self) -> list[Event]:
        log = Log(self._folder / "log")
        try:
            return log.events()
        finally:
            log.close()


@pytest.fixture
def queue(spawn: Spawner, tmp_path: Path) -> Queue:
    return Queue(spawn, tmp_path)


def test_six_processes_are_served_as_they_came_and_a_dead_one_drops_out(queue: Queue) -> None:
    new(Proxy)
    names = ["first", "second", "third", "fourth", "fifth", "sixth"]
    queue.start(**{name: {} for name in names})
    with Proxy.pool.lease():
        queue.join(*names)
        assert in_line() == names
        queue.children["third"].kill()
    assert queue.served(within=15) == ["first", "second", "fourth", "fifth", "sixth"]
    assert judge(queue.events()).overlaps == []


def skipped() -> list[str]:
    return list(Ticket.objects.held().filter(skipped_until__gt=DbNow()).values_list("holder", flat=True))


def test_who_sleeps_in_line_is_skipped_by_everybody_until_it_wakes(queue: Queue) -> None:
    new(Proxy)
    queue.ticket_ttl = 60
    queue.start(sleeper={}, second={}, third={})
    with Proxy.pool.lease():
        queue.join("sleeper", "second", "third")
        queue.children["sleeper"].send(signal.SIGSTOP)
    eventually(lambda: in_line() == ["sleeper"], within=10)
    assert skipped() == ["sleeper"]
    newcomer: Any = eventually(lambda: Proxy.pool.acquire(wait=False))
    queue.children["sleeper"].send(signal.SIGCONT)
    eventually(lambda: skipped() == [], within=10)
    newcomer.release()
    assert Proxy.pool.acquire(wait=False) is None or in_line() == [], "it is kept for the one who has woken"
    assert queue.served(within=15) == ["second", "third", "sleeper"]


def test_the_dead_in_line_cost_those_behind_them_a_moment_once(queue: Queue) -> None:
    """Not each time that a row comes free until their tickets lapse."""
    new(Proxy)
    queue.ticket_ttl = 60
    queue.patience = (lying.PATIENCE, lying.STEP)
    dead, living = ["dead 1", "dead 2", "dead 3", "dead 4"], [f"living {number}" for number in range(1, 8)]
    queue.start(**{name: {} for name in [*dead, *living]})
    with Proxy.pool.lease():
        queue.join(*dead, *living)
        for name in dead:
            queue.children[name].kill()
    assert sorted(queue.served(within=20)) == living
    assert sorted(skipped()) == dead
    gaps = [later.at - earlier.at for earlier, later in pairs(queue.events())]
    assert sorted(gaps)[len(gaps) // 2] < lying.PATIENCE, "most of them were served at once"


def test_the_living_behind_the_dead_are_served_in_order_and_not_taken_for_dead(queue: Queue) -> None:
    """Two rows lie there for as long as nobody knows that those in front are dead; then they go to the living."""
    new(Proxy)
    new(Proxy)
    queue.ticket_ttl = 60
    dead, living = ["dead 1", "dead 2"], ["living 1", "living 2", "living 3", "living 4"]
    queue.start(**{name: {} for name in [*dead, *living]})
    with Proxy.pool.lease(), Proxy.pool.lease():
        queue.join(*dead, *living)
        for name in dead:
            queue.children[name].kill()
    served = queue.served(within=20)
    assert sorted(served[:2]) == living[:2]
    assert sorted(served[2:]) == living[2:]
    # One of the dead may have gone unnoticed, if the living needed one row only.
    assert skipped() != []
    assert set(skipped()) <= set(dead)


def pairs(events: list[Event]) -> list[tuple[Event, Event]]:
    """Return each release with the grant that came after it."""
    moments = [event for event in sorted(events) if event.what in ("acquired", "releasing")]
    return [
        (one, other)
        for one, other in itertools.pairwise(moments)
        if (one.what, other.what) == ("releasing", "acquired")
    ]


def test_priority_comes_before_arrival(queue: Queue) -> None:
    new(Proxy)
    queue.start(usual={}, late={"priority": 5}, urgent={"priority": -1}, usual_too={})
    with Proxy.pool.lease():
        queue.join("late", "usual", "usual_too", "urgent")
        assert in_line() == ["urgent", "usual", "usual_too", "late"]
    assert queue.served(within=15) == ["urgent", "usual", "usual_too", "late"]


def test_waiters_for_something_else_are_not_held_up(queue: Queue) -> None:
    """What the first in line wants does not come free; those behind it who want other rows are served."""
    us, german = new(Proxy, country="US"), new(Proxy, country="DE")
    queue.start(
        american={"country": "US"}, german={"country": "DE"}, anything={}, american_too={"country": "US"}
    )
    held = [Proxy.pool.acquire(country=country) for country in ("US", "DE")]
    queue.join("american", "american_too", "german", "anything")
    held[1].release()
    eventually(lambda: in_line() == ["american", "american_too"], within=5)
    # A row that nobody in line may have is not kept for them.
    newcomer: Any = eventually(lambda: Proxy.pool.acquire(wait=False), within=5)
    assert newcomer.pk == german.pk
    held[0].release()
    assert queue.served(within=15) == ["german", "anything", "american", "american_too"]
    newcomer.release()
    assert {event.pk for event in queue.events()[-4:]} == {us.pk}


def test_a_newcomer_who_does_not_wait_never_overtakes(queue: Queue) -> None:
    new(Proxy)
    names = ["first", "second", "third", "fourth"]
    queue.start(**{name: {} for name in names})
    with Proxy.pool.lease():
        queue.join(*names)
    overtook = []
    while waiting := in_line():
        if (lease := Proxy.pool.acquire(wait=False)) is not None:
            overtook += in_line()  # nobody, if the last one has left meanwhile
            lease.release()
        assert set(waiting) <= set(names)
    assert overtook == []
    assert queue.served(within=15) == names
