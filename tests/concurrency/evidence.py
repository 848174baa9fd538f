"""The actions of holders, recorded in a file outside the database: the evidence for ``judge``."""

import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple


class Event(NamedTuple):
    """One line.

    Attributes:
        at: time by CLOCK_MONOTONIC, which all processes of a machine share.
        what: acquired, using, releasing; or killed or another word about the process, without a row.
        pid: the process, or a unique number if process ids may be reused.
        since: start of the call that ended at this time; 0 if irrelevant.
        text: other data.
    """

    at: float
    what: str
    pid: int
    pk: int = 0
    fence: int = 0
    since: float = 0.0
    text: str = ""


class Log:
    """An append-only file for many processes; each event is one write, so lines never mix.

    Args:
        who: identifies the writer; default: the process id.
    """

    def __init__(self, path: str | Path, who: int | None = None) -> None:
        self._path, self._who = Path(path), who
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)

    def note(self, what: str, lease: Any, *, since: float = 0.0) -> float:
        """Record that this process uses its lease, and return the time; raises LeaseLost if it is lost.

        The recorded time is the one before the check of the handle: a lease that is held afterwards was held before, so
        the record is true even if the process is paused in between.
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
        """Record another event; ``at`` defaults to now, ``pid`` to this process."""
        moment = time.monotonic() if at is None else at
        who = pid if pid is not None else self._who if self._who is not None else os.getpid()
        line = f"{moment:.6f} {what} {who} {pk} {fence} {since:.6f} {' '.join(text.split())}"
        os.write(self._file, f"{line.rstrip()}\n".encode())

    def events(self) -> list[Event]:
        """Return all events so far, of all processes."""
        with self._path.open() as file:
            return [_event(line) for line in file if line.endswith("\n")]

    def close(self) -> None:
        os.close(self._file)


def _event(line: str) -> Event:
    at, what, pid, pk, fence, since, *text = line.split(maxsplit=6)
    words = text[0].rstrip() if text else ""
    return Event(float(at), sys.intern(what), int(pid), int(pk), int(fence), float(since), words)
