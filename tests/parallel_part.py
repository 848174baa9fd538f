"""Runs a part of the test run in parallel, in its own process: while one part waits, another one computes."""

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.outcome import Outcome
from tests.processes import GRACE, finished

TIMEOUT = 80 * 60


class Beside:
    """The part ``name`` while it runs; what it prints is shown at its end, so that no two parts mix."""

    def __init__(self, name: str, command: Sequence[str], folder: Path) -> None:
        self._name, self._report, self._said = name, folder / "outcome.json", folder / "said"
        with self._said.open("w") as said:
            self._process = subprocess.Popen(
                [*command, str(self._report)],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def outcome(self) -> Outcome:
        """Wait for its end, show what it has printed, and return what came out."""
        code = finished(self._process, TIMEOUT)
        print(self._said.read_text(errors="replace"), end="", flush=True)
        if not self._report.exists():
            print(f"The part {self._name} ended with code {code} and says no more.", flush=True)
            return Outcome(self._name, failed=1)
        return Outcome.of(json.loads(self._report.read_text()))

    def end(self) -> None:
        """End it as Ctrl-C would, if it still runs, with its servers and all."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGINT)
            finished(self._process, 2 * GRACE)  # it gives as much to what it has started


@contextlib.contextmanager
def beside(name: str, command: Sequence[str] = ()) -> Iterator[Beside]:
    """Run this part beside what happens in the block; it does not outlive it.

    Args:
        command: runs it, when given the file for its outcome as its last word; default: this harness.
    """
    command = command or [sys.executable, "-m", "tests", "--only", name, "--outcome"]
    with tempfile.TemporaryDirectory(prefix="resourcepool-beside-") as folder:
        part = Beside(name, command, Path(folder))
        try:
            yield part
        finally:
            part.end()


def written(outcome: Outcome, file: Path) -> None:
    """Write an outcome for the one who has started us."""
    file.write_text(json.dumps(dataclasses.asdict(outcome)))
