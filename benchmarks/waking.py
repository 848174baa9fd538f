"""How long after a release one waiter has its lease, on a machine that does nothing else."""

import multiprocessing
import random
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any

from benchmarks import fleet

WAITS = (0.2, 1.0)  # seconds for which the waiter has waited, drawn evenly
TIMEOUT = 120.0  # seconds for one grant


def delays(kind: Any, url: str, grants: int) -> list[float]:
    """Return how many seconds after release() returned in one process acquire() returned in another one, sorted.

    There is one row. The clock of ``time.monotonic()`` is the same for every process of a machine. Less than nothing
    is possible: the waiter may have the row before the releaser hears that it is gone.

    Args:
        kind: a contestant of ours, whose settings both processes have.
    """
    kind.prepare(url, 1)
    pipes, processes = zip(*[_start(work, kind, url) for work in (_hold, _wait)], strict=True)
    holder, waiter = pipes
    found = []
    try:
        for _ in range(grants):
            _ask(holder, None)
            waiter.send(None)
            released_at = _ask(holder, random.uniform(*WAITS))
            found.append(_heard(waiter) - released_at)
    finally:
        for process in processes:
            process.kill()
            process.join()
    return sorted(found)


def _hold(ours: Any, pipe: "Connection[Any, Any]") -> None:
    """Each turn: acquire, say so, hear for how long, release, say when that was."""
    while True:
        pipe.recv()
        lease = ours.acquire()
        pipe.send(0.0)
        time.sleep(pipe.recv())
        lease.release()
        pipe.send(time.monotonic())


def _wait(ours: Any, pipe: "Connection[Any, Any]") -> None:
    """Each turn: wait for the row, give it back, say when it came."""
    while True:
        pipe.recv()
        lease = ours.acquire()
        granted_at = time.monotonic()
        lease.release()
        pipe.send(granted_at)


def _start(work: Any, kind: Any, url: str) -> tuple[Any, Any]:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_child, args=(work, kind, url, theirs), daemon=True)
    process.start()
    theirs.close()
    return ours, process


def _child(work: Any, kind: Any, url: str, pipe: Any) -> None:
    try:
        work(kind(url, 0), pipe)
    except BaseException:  # noqa: BLE001 (told to the parent, which raises it)
        pipe.send(traceback.format_exc())


def _ask(pipe: "Connection[Any, Any]", what: object) -> float:
    pipe.send(what)
    return _heard(pipe)


def _heard(pipe: "Connection[Any, Any]") -> float:
    return float(fleet.heard(pipe, TIMEOUT))
