"""Consumers in processes of their own, and what they have noted."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.consuming import TYPE
from benchmarks.places import ROOT
from resourcepool.taskqueue import submit
from tests.eventually import eventually

WITHIN = 120  # seconds


class Notes:
    """What the consumers have noted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def begun(self) -> dict[str, float]:
        """Return {key: moment} of the tasks that have begun."""
        whole, _, _ = self.path.read_text().rpartition("\n")  # the last line may be being written
        lines = (line.rsplit(" ", 1) for line in whole.splitlines())
        return {key: float(moment) for key, moment in lines}

    def after_submitting(self, stream: str, key: str, pause: float) -> float:
        """Submit a task; return how many seconds after that was committed it began."""
        time.sleep(pause)
        submit(stream, TYPE, key=key)
        at = time.monotonic()
        eventually(lambda: key in self.begun(), WITHIN)
        return self.begun()[key] - at


@contextmanager
def consumers(stream: str, count: int) -> Iterator[tuple[list[subprocess.Popen[bytes]], Notes]]:
    """Run consumers of this stream for the length of the block."""
    with tempfile.TemporaryDirectory(prefix="resourcepool-bench-") as folder:
        notes = Notes(Path(folder, "notes"))
        command = [sys.executable, "-m", "benchmarks.consuming", stream, str(notes.path)]
        started = [subprocess.Popen(command, cwd=ROOT, env={**os.environ}) for _ in range(count)]
        try:
            yield started, notes
        finally:
            for process in started:
                process.terminate()
            for process in started:
                process.wait(WITHIN)
