"""Many real processes that do the same thing at the same time, started warm and let go together."""

import contextlib
import gc
import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, Sequence
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
    late: int = 0  # cycles that ended after the phase
    processor: float = 0.0  # seconds that all threads of the process used, in user and system mode


Work = Callable[[Tally, float], None]  # counts into the tally until this moment of time.monotonic()


def run(processes: int, prepare: Callable[[int], Work], seconds: float) -> list[Tally]:
    """Return what each process counted in ``seconds``, after a warm-up; see ``run_phases``."""
    warm_up = min(WARM_UP, seconds) + processes * 0.02
    return [tallies[-1] for tallies in run_phases(processes, prepare, (warm_up, seconds))]


def run_phases(
    processes: int,
    prepare: Callable[[int], Work],
    phases: Sequence[float],
    meanwhile: Callable[[float, float], None] | None = None,
) -> list[list[Tally]]:
    """Fork ``processes``, let each prepare itself (connect), and all work at once; return their tallies by phase.

    Args:
        prepare: called in each process with its number; returns what is measured.
        phases: seconds, one phase after the other without a pause.
        meanwhile: called in this process while they work, with the moments at which the last phase begins and ends.

    Raises:
        RuntimeError: a process died or failed; with what it said.
    """
    context = multiprocessing.get_context("fork")
    pipes = []
    children = []
    gc.freeze()
    for number in range(processes):
        ours, theirs = context.Pipe()
        child = context.Process(target=_child, args=(number, prepare, phases, theirs), daemon=True)
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
        end_at = begin_at + sum(phases)
        if meanwhile:
            meanwhile(end_at - phases[-1], end_at)
        return [heard(pipe, sum(phases) + GRACE) for pipe in pipes]
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
    number: int, prepare: Callable[[int], Work], phases: Sequence[float], pipe: "Connection[Any, Any]"
) -> None:
    tallies = []
    try:
        work = prepare(number)
        pipe.send(True)
        until = pipe.recv()
        time.sleep(max(0.0, until - time.monotonic()))
        for seconds in phases:
            until += seconds
            tally, used = Tally(), time.process_time()
            work(tally, until)
            tally.processor = time.process_time() - used
            tallies.append(tally)
        pipe.send(tallies)
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
    """Return work that repeats the client's cycle; one that ends after the phase counts where it began."""

    def work(tally: Tally, until: float) -> None:
        while time.monotonic() < until:
            try:
                tally.waits.append(client.cycle(hold))
                tally.late = int(time.monotonic() > until)
                tally.notes += client.notes
            except Exception as error:  # noqa: BLE001 (what callers see is counted)
                tally.errors.append(f"{type(error).__name__}: {error}"[:200])

    return work


def quantile(values: list[Any], share: float) -> Any:
    """Return the value below which ``share`` of the sorted ``values`` lie; 0 when there are none."""
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0.0
