"""Processes that share a semaphore: one that is killed strands nothing, and never more hold it than it has permits."""

import os
import random
import time
from pathlib import Path

import pytest

from resourcepool.exceptions import NotHeld
from resourcepool.locks import Semaphore
from resourcepool.models import SemaphorePermit, Ticket
from tests.concurrency.tickets import lapse_after
from tests.eventually import eventually
from tests.spawned import Spawner

PERMITS, PROCESSES, TTL = 3, 5, 1.0


def hold_until_killed(n: int) -> None:
    assert Semaphore("seats", PERMITS, ttl=TTL).acquire(n=n)
    print("held", flush=True)
    time.sleep(60)


def wait_in_line(n: int) -> None:
    lapse_after(TTL)
    print("waits", flush=True)
    Semaphore("seats", PERMITS, ttl=TTL).acquire(n=n)
    print("held", flush=True)


def use_again_and_again(path: str) -> None:
    """Note when each permit is held, by the clock that all processes of a host share, until the test says stop."""
    seats, stop = Semaphore("seats", PERMITS, ttl=TTL), Path(path, "stop")
    lapse_after(TTL)
    with Path(path, f"log{os.getpid()}").open("a") as log:
        while not stop.exists():
            n = random.choice([1, 1, 2, 3])
            hold = seats.acquire(timeout=30, n=n)
            assert hold is not None
            assert len(hold.leases) == n
            since = time.monotonic()
            time.sleep(random.uniform(0, 0.02))
            if hold.is_held:
                log.write(f"{since} {time.monotonic()} {n}\n")
                log.flush()
            seats.release(n)
    print("done", flush=True)


def most_at_once(folder: Path) -> int:
    """Return how many permits were held at the moment when most of them were."""
    changes: list[tuple[float, int]] = []
    for file in folder.glob("log*"):
        for since, until, n in (line.split() for line in file.read_text().splitlines() if line.count(" ") == 2):
            changes += [(float(since), int(n)), (float(until), -int(n))]
    now, most = 0, 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


def test_the_permits_of_one_that_is_killed_come_back(spawn: Spawner) -> None:
    seats = Semaphore("seats", PERMITS, ttl=TTL)
    child = spawn(hold_until_killed, PERMITS)
    child.line("held")
    assert seats.available() == 0
    child.kill()
    hold = seats.acquire(timeout=30, n=PERMITS)
    assert hold is not None
    hold.release()
    assert (seats.available(), seats.value, SemaphorePermit.objects.count()) == (PERMITS, PERMITS, PERMITS)


def test_what_one_had_collected_that_is_killed_while_it_waits_comes_back(spawn: Spawner) -> None:
    seats = Semaphore("seats", PERMITS, ttl=TTL)
    first, second = seats.acquire(n=2), seats.acquire()
    assert first
    assert second
    child = spawn(wait_in_line, PERMITS)
    child.line("waits")
    eventually(Ticket.objects.waiting().exists)
    first.release()
    assert seats.available() == 0  # the waiter has collected them
    child.kill()
    second.release()
    assert seats.acquire(timeout=30, n=PERMITS) is not None


def test_never_more_than_there_are_while_some_are_killed(spawn: Spawner, tmp_path: Path) -> None:
    children = [spawn(use_again_and_again, str(tmp_path)) for _ in range(PROCESSES)]
    for victim in children[:2]:
        eventually((tmp_path / f"log{victim.pid}").exists)
        victim.kill()
    lines = len(_lines(tmp_path))
    eventually(lambda: len(_lines(tmp_path)) > lines + 20)
    (tmp_path / "stop").touch()
    for child in children[2:]:
        child.succeed()
    assert 2 <= most_at_once(tmp_path) <= PERMITS
    seats = Semaphore("seats", PERMITS, ttl=TTL)
    assert seats.acquire(timeout=30, n=PERMITS) is not None  # what the killed ones held has come back


def _lines(folder: Path) -> list[str]:
    return [line for file in folder.glob("log*") for line in file.read_text().splitlines()]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_fork_holds_nothing_of_its_parent() -> None:
    seats = Semaphore("seats", PERMITS)
    hold = seats.acquire()
    assert hold is not None
    pid = os.fork()
    if not pid:  # it must not return to pytest
        code = 1
        try:
            seats.release()
        except NotHeld:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert hold.is_held
    hold.release()
