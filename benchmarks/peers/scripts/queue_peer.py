"""What is asked of a task queue: tasks done, submission to start, and submissions, in this order.

with_PEER.py measure TIMES      prints the figures as JSON; 0.1 is a look, whose figures mean little
with_PEER.py work CONCURRENCY   is a worker, until SIGTERM
"""

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from noting import WITHIN, eventually, forget, noted

CONCURRENCY = (1, 8)
MANY = 10_000
PAUSES = (0.5, 1.0)  # seconds between two submissions to an idle queue, drawn evenly


@dataclass
class Queue:
    """How this peer does it; ``is_process_each``: a worker does one task at a time, so there are several."""

    prepare: Callable[[], object]
    submit: Callable[[str], object]
    submit_many: Callable[[list[str]], object]
    work: Callable[[int], object]
    is_process_each: bool = False

    def main(self) -> None:
        """Do what the command line says."""
        what, number = sys.argv[1], float(sys.argv[2])
        if what == "work":
            self.work(int(number))
            return
        self.prepare()
        figures: dict[str, object] = {f"done {one}": self._done(one, int(500 * number)) for one in CONCURRENCY}
        print(json.dumps(figures | {"start": self._start(round(12 * number))} | self._submits(number)))

    def _done(self, concurrency: int, many: int) -> float:
        forget()
        self.submit_many([str(n) for n in range(many)])
        with self._working(concurrency):
            eventually(lambda: len(noted()) == many, f"{many} tasks")
        moments = sorted(noted().values())
        return many / (moments[-1] - moments[0])

    def _start(self, samples: int) -> list[float]:
        forget()
        with self._working(1):
            self.submit("first")  # waits for the worker, and does not count
            eventually(lambda: "first" in noted(), "the first task")
            return [self._started(f"start/{n}") for n in range(samples)]

    def _started(self, key: str) -> float:
        time.sleep(random.uniform(*PAUSES))
        self.submit(key)
        at = time.monotonic()
        eventually(lambda: key in noted(), key)
        return noted()[key] - at

    def _submits(self, seconds: float) -> dict[str, float]:
        began, until = time.monotonic(), time.monotonic() + seconds
        count = 0
        while time.monotonic() < until:
            self.submit(f"single/{count}")
            count += 1
        single, began = count / (time.monotonic() - began), time.monotonic()
        many = int(MANY * min(1, seconds))
        self.submit_many([f"many/{n}" for n in range(many)])
        return {"submit": single, "submit_many": many / (time.monotonic() - began)}

    @contextmanager
    def _working(self, concurrency: int) -> Iterator[None]:
        each = [1] * concurrency if self.is_process_each else [concurrency]
        workers = [subprocess.Popen([sys.executable, sys.argv[0], "work", str(one)]) for one in each]
        try:
            yield
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait(WITHIN)
