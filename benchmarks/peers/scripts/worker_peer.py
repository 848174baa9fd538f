"""What is asked of a task queue as a dispenser and as a timer: what is kept after a kill, lags, and a drain.

with_PEER.py measure TIMES   prints the figures as JSON
with_PEER.py work 8          is a worker, or one of eight, until SIGTERM
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from noting import WITHIN, eventually, forget, noted

WORKERS = 8
KEPT, DUE_IN, KILLED_AFTER, PATIENCE = 200, 8.0, 4.0, 15.0  # tasks, and seconds
RATES, SECONDS = (100, 300, 1_000), 3  # due each second, for so long
EACH = 0.003  # seconds that setting one may take
BEHIND = 10.0  # seconds of lag with which nobody keeps up
TASKS, AT_MOST = 20_000, 30.0  # of no work; seconds


@dataclass
class Workers:
    """How this peer does it; ``is_process_each``: a worker is one process, so there are eight."""

    prepare: Callable[[], object]
    submit_many: Callable[[list[str]], object]
    schedule: Callable[[str, float], object]  # a key, and in how many seconds it is due
    work: Callable[[int], object]
    is_process_each: bool = False

    def main(self) -> None:
        """Do what the command line says."""
        if sys.argv[1] == "work":
            self.work(int(sys.argv[2]))
            return
        self.prepare()
        print(json.dumps({"kept": self._kept(), **self._lags(), "drained": self._drained()}))

    def _kept(self) -> int:
        """Return how many of those that were set are begun although the workers were killed before."""
        with self._working() as workers:
            self.submit_many(["ready"])
            eventually(lambda: "ready" in noted(), "the first task")
            last = max(self._set(f"kept {n}", DUE_IN) for n in range(KEPT))
            time.sleep(KILLED_AFTER)
            for worker in workers:
                os.killpg(worker.pid, signal.SIGKILL)
        with self._working():
            time.sleep(max(0.0, last - time.monotonic()) + PATIENCE)
        return sum(key.startswith("kept") for key in noted())

    def _lags(self) -> dict[str, object]:
        """Return the lags at the highest rate with which it keeps up, and that rate."""
        best: dict[str, object] = {"rate": 0, "lags": []}
        with self._working():
            for rate in RATES:
                forget()
                self.submit_many([f"ready {rate}"])
                eventually(lambda rate=rate: f"ready {rate}" in noted(), "the first task")
                count = SECONDS * rate
                start = time.monotonic() + 2.0 + count * EACH
                due = {f"{rate} {n}": start + n / rate for n in range(count)}
                for key, at in due.items():
                    self.schedule(key, at - time.monotonic())
                with suppress(SystemExit):
                    eventually(lambda due=due: len(noted()) > len(due), "all of them", start + SECONDS + BEHIND)
                lags = sorted(noted()[key] - at for key, at in due.items() if key in noted())
                if len(lags) < count or lags[int(count * 0.99)] > BEHIND:
                    break
                best = {"rate": rate, "lags": lags}
        return best

    def _drained(self) -> float:
        """Return how many tasks a second they finish, of so many that are there when they begin."""
        forget()
        self.submit_many([f"drain {n}" for n in range(TASKS)])
        with self._working():
            eventually(lambda: any(key.startswith("drain") for key in noted()), "the first task")
            with suppress(SystemExit):
                eventually(lambda: len(noted()) >= TASKS, "all of them", time.monotonic() + AT_MOST, 0.2)
        moments = sorted(at for key, at in noted().items() if key.startswith("drain"))
        return len(moments) / (moments[-1] - moments[0])

    def _set(self, key: str, seconds: float) -> float:
        at = time.monotonic() + seconds
        self.schedule(key, seconds)
        return at

    @contextmanager
    def _working(self) -> Iterator[list[subprocess.Popen[bytes]]]:
        command = [sys.executable, sys.argv[0], "work", "1" if self.is_process_each else str(WORKERS)]
        count = WORKERS if self.is_process_each else 1
        workers = [subprocess.Popen(command, start_new_session=True) for _ in range(count)]
        try:
            yield workers
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                with suppress(subprocess.TimeoutExpired):
                    worker.wait(10)
                with suppress(ProcessLookupError):
                    os.killpg(worker.pid, signal.SIGKILL)
                worker.wait(WITHIN)
