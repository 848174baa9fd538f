"""What holders say they did, in a file outside the database: the evidence on which ``judge`` decides."""

import os
import time
from pathlib import Path
from typing import Any, NamedTuple


class Event(NamedTuple):
    """One line. ``what``: acquired, using, releasing; or killed, which is about a process and no row."""

    at: float
    what: str
    pid: int
    pk: int = 0
    fence: int = 0


class Log:
    """An append-only file that many processes write to; each event is one write, so lines never mix.

    Moments are CLOCK_MONOTONIC, which all processes of a machine share.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)

    def note(self, what: str, lease: Any) -> None:
        """Note that this process does something with what it holds; raises LeaseLost, noting nothing, if it does not.

        The moment noted is the one before the look at the handle: what is held then was held before, and however long
        this process is kept from running in between, its evidence is true.
        """
        now = time.monotonic()
        lease.ensure_held()
        self._write(now, what, os.getpid(), lease.pk, lease.fence)

    def killed(self, pid: int) -> None:
        self._write(time.monotonic(), "killed", pid, 0, 0)

    def events(self) -> list[Event]:
        """Return everything written so far by anybody."""
        rows = (line.split() for line in self._path.read_text().splitlines())
        return [Event(float(at), what, int(pid), int(pk), int(fence)) for at, what, pid, pk, fence in rows]

    def close(self) -> None:
        os.close(self._file)

    def _write(self, now: float, what: str, *numbers: int) -> None:
        line = " ".join([f"{now:.6f}", what, *map(str, numbers)])
        os.write(self._file, f"{line}\n".encode())
