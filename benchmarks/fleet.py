"""Many real processes that do the same thing at the same time, started warm and let go together."""

import contextlib
import gc
import multiprocessing
import os
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Protocol

START_TIMEOUT = 60.0  # seconds
GRACE = 60.0  # seconds for the last cycle, which may have to wait for a row
WARM_UP = 1.0  # seconds of the same work before anything is counted: caches, plans, pages copied after the fork


@dataclass
class Tally:
    """What one process counted."""

    waits: list[float] = field(default_factory=list)  # seconds each acquire took
    errors: list[str] = field(default_factory=list)
    notes: list[Any] = field(default_factory=list)  # whatever a scenario wants to judge afterwards
    warm_notes: list[Any] = field(default_factory=list)  # the same, of what was done to warm up


Work = Callable[[Tally, float], None]  # counts into the tally until this moment of time.monotonic()


def run(processes: int, prepare: Callable[[int], Work], seconds: float) -> list[Tally]:
    """Fork ``processes``, let each prepare itself (connect, warm up), and all work for ``seconds`` at once.

    Args:
        prepare: called in each process with its number; returns what is measured.

    Raises:
        RuntimeError: a process died or failed; with what it said.
    """
    warm_up = min(WARM_UP, seconds) + processes * 0.02
    context = multiprocessing.get_context("fork")
    pipes = []
    children = []
    gc.freeze()
    for number in range(processes):
        ours, theirs = context.Pipe()
        child = context.Process(target=_child, args=(number, prepare, warm_up, seconds, theirs), daemon=True)
        child.start()
        theirs.close()
        pipes.append(ours)
        children.append(child)
    try:
        for pipe in pipes:
            heard(pipe, START_TIMEOUT)
        begin_at = time.monotonic() + 0.2 + processes * 0.002
        for pipe in pipes:
            pipe.send(begin_at)
        return [heard(pipe, warm_up + seconds + GRACE) for pipe in pipes]
    finally:
        for child in children:
            child.join(5)
            if child.is_alive():
                child.kill()
                child.join()


def heard(pipe: "Connection[Any, Any]", timeout: float) -> Any:
    """Return what the process at the other end says; raises RuntimeError when it dies, fails or says nothing."""
    if not pipe.poll(timeout):
        raise RuntimeError(f"a process said nothing for {timeout:g} s")
    try:
        said = pipe.recv()
    except EOFError:
        raise RuntimeError("a process died") from None
    if isinstance(said, str):
        raise RuntimeError(said)  # noqa: TRY004 (it is what the process said, not a wrong argument)
    return said


def _child(
    number: int, prepare: Callable[[int], Work], warm_up: float, seconds: float, pipe: "Connection[Any, Any]"
) -> None:
    tally = Tally()
    try:
        work = prepare(number)
        pipe.send(True)
        begin_at = pipe.recv()
        time.sleep(max(0.0, begin_at - time.monotonic()))
        warm = Tally()
        work(warm, begin_at + warm_up)
        tally.warm_notes = warm.notes
        work(tally, begin_at + warm_up + seconds)
        pipe.send(tally)
    except BaseException:  # noqa: BLE001 (told to the parent, which raises it)
        with contextlib.suppress(OSError):
            pipe.send(traceback.format_exc())
    pipe.close()
    os._exit(0)  # what is held or open is the scenario's to look at, and ends with the process


class Client(Protocol):
    """What repeats: acquire, hold for so many seconds, release; returns how many seconds acquiring took."""

    notes: list[Any]  # of the last cycle

    def cycle(self, hold: float) -> float: ...


def cycles(client: Client, hold: float) -> Work:
    """Return work that repeats the client's cycle."""

    def work(tally: Tally, until: float) -> None:
        while time.monotonic() < until:
            try:
                tally.waits.append(client.cycle(hold))
                tally.notes += client.notes
            except Exception as error:  # noqa: BLE001 (what callers see is counted)
                tally.errors.append(f"{type(error).__name__}: {error}"[:200])

    return work


def quantile(values: list[Any], share: float) -> Any:
    """Return the value below which ``share`` of the sorted ``values`` lie; 0 when there are none."""
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0.0
