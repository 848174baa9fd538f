"""What a worker notes, and the measurer reads: a line for each key, with the moment by the clock that all share."""

import os
import time
from pathlib import Path

PATH = Path(os.environ["NOTES"])
FILE = os.open(PATH, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
WITHIN = 120  # seconds


def note(key: object) -> None:
    """Note that this has begun."""
    os.write(FILE, f"{key} {time.monotonic()}\n".encode())


def noted() -> dict[str, float]:
    """Return {key: moment}."""
    lines = (line.rsplit(" ", 1) for line in PATH.read_text().splitlines())
    return {key: float(moment) for key, moment in lines}


def forget() -> None:
    """Begin anew, so that reading takes no longer for what was before."""
    os.truncate(PATH, 0)


def eventually(predicate, what: str, until: float | None = None, pause: float = 0.005):
    """Return what ``predicate`` returns as soon as it is true; it is asked until this moment, after each pause."""
    until = time.monotonic() + WITHIN if until is None else until
    while not (result := predicate()):
        if time.monotonic() > until:
            raise SystemExit(f"not in time: {what}")
        time.sleep(pause)
    return result
