"""What is asked of a lock: cycles per second, how soon the next one has it, and how a thousand waiters are served.

with_PEER_lock.py measure SECONDS   prints the figures as JSON
"""

import itertools
import json
import multiprocessing
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

Pair = tuple[Callable[[], object], Callable[[], object]]  # acquire, release
Make = Callable[[str], Pair]

OWN, SAME = (1, 8, 32), 8  # processes
WAITERS, WAITING = 1_000, 4  # threads in all, processes
WARM = 20  # cycles


def main(client: Callable[[], Make], parts: tuple[str, ...] = ("own", "same", "waiters")) -> None:
    """Measure.

    Args:
        client: called once in each process; returns what makes the two calls for a name, once in each thread.
        parts: what can be measured of it.
    """
    seconds, figures = float(sys.argv[2]), dict[str, Any]()
    if "own" in parts:
        figures["own"] = {count: _own(client, count, seconds) for count in OWN}
    if "same" in parts:
        figures["same"] = _same(client, seconds)
    if "waiters" in parts:
        figures["waiters"] = _waiters(client)
    print(json.dumps(figures))


def _own(client: Callable[[], Make], count: int, seconds: float) -> float:
    def run(number: int, start: Any) -> int:
        acquire, release = client()(f"own-{number}")
        return len(_cycles(acquire, release, start, seconds))

    return sum(_in_processes(run, count)) / seconds


def _same(client: Callable[[], Make], seconds: float) -> dict[str, float]:
    def run(number: int, start: Any) -> list[tuple[float, float]]:
        acquire, release = client()("same")
        return _cycles(acquire, release, start, seconds)

    cycles = sorted(cycle for found in _in_processes(run, SAME) for cycle in found)
    gaps = sorted(following[0] - one[1] for one, following in itertools.pairwise(cycles))
    return {
        "rate": len(cycles) / seconds,
        "p50": gaps[len(gaps) // 2],
        "p99": gaps[int(len(gaps) * 0.99)],
        "overlaps": sum(gap < 0 for gap in gaps),
    }


def _cycles(acquire: Any, release: Any, start: Any, seconds: float) -> list[tuple[float, float]]:
    """Return when it was acquired, and when the release was sent."""
    for _ in range(WARM):
        acquire()
        release()
    start.wait()
    found, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        acquire()
        at = time.monotonic()
        found.append((at, time.monotonic()))
        release()
    return found


def _waiters(client: Callable[[], Make]) -> dict[str, float]:
    """Return how long it takes until each of a thousand threads has had it once, and the memory of nobody."""

    def run(number: int, start: Any) -> list[float]:
        make, served = client(), list[float]()

        def wait() -> None:
            acquire, release = make("waited-for")
            acquire()
            served.append(time.monotonic())
            release()

        threads = [threading.Thread(target=wait) for _ in range(WAITERS // WAITING)]
        if number == 0:
            acquire, release = make("waited-for")
            acquire()
        start.wait()
        for thread in threads:
            thread.start()
        start.wait()
        if number == 0:
            time.sleep(2)  # all of them stand in line
            served.append(time.monotonic())
            release()
        for thread in threads:
            thread.join()
        return served

    served = sorted(at for found in _in_processes(run, WAITING) for at in found)
    return {"seconds": served[-1] - served[0], "served": len(served) - 1}


def _in_processes(run: Callable[[int, Any], Any], count: int) -> list[Any]:
    fork = multiprocessing.get_context("fork")
    start, pipes = fork.Barrier(count), []
    for number in range(count):
        ours, theirs = fork.Pipe(duplex=False)

        def work(number: int = number, pipe: Any = theirs) -> None:
            pipe.send(run(number, start))

        process = fork.Process(target=work)
        process.start()
        theirs.close()
        pipes.append((process, ours))
    found = [pipe.recv() for _, pipe in pipes]
    for process, _ in pipes:
        process.join()
    return found
