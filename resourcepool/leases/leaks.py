"""Leases that somebody forgot: where they were acquired, and whether anybody can still give them back.

The idea is HikariCP's leak detection. A forgotten lease is renewed all the same: whoever dropped the handle may still
use the thing.
"""

import sys
from pathlib import Path
from types import FrameType
from typing import Any

OURS = str(Path(__file__).resolve().parent.parent)
PASSED_THROUGH = ("contextlib.py", "/asgiref/", "/concurrent/futures/", "threading.py")


def acquired_at() -> str:
    """Return "file:line in function" of the nearest caller outside this package; "" if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(OURS) and not any(part in name for part in PASSED_THROUGH):
            return f"{name}:{frame.f_lineno} in {frame.f_code.co_name}"
        frame = frame.f_back
    return ""


def forgotten(kept: list[Any]) -> list[Any]:
    """Return those of ``kept``, a list of a dict's keys, which nobody else refers to: nobody can give them back."""
    return [one for one, count in zip(kept, _references(kept), strict=True) if count <= _FEWEST]


def _references(kept: list[Any]) -> list[int]:
    return [sys.getrefcount(one) for one in kept]


def _fewest() -> int:
    """Return how many references there are to what only a dict and a list of its keys know."""
    known = {object(): None}
    return _references(list(known))[0]


_FEWEST = _fewest()
