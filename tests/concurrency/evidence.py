"""What holders say they did, in a file outside the database: the evidence on which ``judge`` decides."""

import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple


class Event(NamedTuple):
    """One line.

    Attributes:
        at: the moment, by CLOCK_MONOTONIC, which all processes of a machine share.
        what: acquired, using, releasing; or killed, or any other word, which are about a process and no row.
        pid: the process; or a number of its own, where process ids come again.
        since: when what ended or was answered at this moment began; 0 when that does not matter.
        text: anything else.
    """

    at: float
    what: str
    pid: int
    pk: int = 0
    fence: int = 0
    since: float = 0.0
    text: str = ""


class Log:
    """An append-only file that many processes write to; each event is one write, so lines never mix.

    Args:
        who: in whose name events are noted; the process's own id when not given.
    """

    def __init__(self, path: str | Path, who: int | None = None) -> None:
        self._path, self._who = Path(path), who
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)

    def note(self, what: str, lease: Any, *, since: float = 0.0) -> float:
        """Note that this process does something with what it holds; raises LeaseLost, noting nothing, if it does not.

        The moment noted is the one before the look at the handle: what is held then was held before, and however long
        this process is kept from running in between, its evidence is true. Returns that moment.
        """
        now = time.monotonic()
        lease.ensure_held()
        self.tell(what, at=now, pk=lease.pk, fence=lease.fence, since=since)
        return now

    def killed(self, pid: int) -> None:
        self.tell("killed", pid)

    def tell(
        self,
        what: str,
        pid: int | None = None,
        *,
        at: float | None = None,
        pk: int = 0,
        fence: int = 0,
        since: float = 0.0,
        text: str = "",
    ) -> None:
        """Note anything else; ``at`` is now and ``pid`` this process when not given."""
        moment = time.monotonic() if at is None else at
        who = pid if pid is not None else self._who if self._who is not None else os.getpid()
        line = f"{moment:.6f} {what} {who} {pk} {fence} {since:.6f} {' '.join(text.split())}"
        os.write(self._file, f"{line.rstrip()}\n".encode())

    def events(self) -> list[Event]:
        """Return everything written so far by anybody."""
        with self._path.open() as file:
            return [_event(line) for line in file if line.endswith("\n")]

    def close(self) -> None:
        os.close(self._file)


def _event(line: str) -> Event:
    at, what, pid, pk, fence, since, *text = line.split(maxsplit=6)
    words = text[0].rstrip() if text else ""
    return Event(float(at), sys.intern(what), int(pid), int(pk), int(fence), float(since), words)
