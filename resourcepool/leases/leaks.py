"""Forgotten leases: where they were acquired, and whether any code can still give them back.

The idea is HikariCP's leak detection. A forgotten lease is renewed all the same, because the code that dropped the
handle may still use the resource.

References are counted, rather than a ``weakref`` watched, because the keeper has to have the handle itself:
``on_lost`` is called with it, it is renewed when it is forgotten, and released at the end of the process. A finalizer
that brings it back would have to be Python code, and Python drops an exception that a signal handler raises in one:
Ctrl-C would be lost. A count is taken once per beat; an acquire pays nothing for it.
"""

import sys
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

OURS = str(Path(__file__).resolve().parent.parent)
PASSED_THROUGH = ("contextlib.py", "/asgiref/", "/concurrent/futures/", "threading.py")


SourceLine = tuple[CodeType, int]  # in the caller's code, and the line


def written(at: SourceLine) -> str:
    """Return "file:line in function"."""
    code, line = at
    return f"{code.co_filename}:{line} in {code.co_name}"


def acquired_at() -> SourceLine | None:
    """Return the nearest caller outside this package; None if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not _passes_on(frame.f_code.co_filename):
            return frame.f_code, frame.f_lineno
        frame = frame.f_back
    return None


@lru_cache(1_000)
def _passes_on(file: str) -> bool:
    """Whether functions in this file only acquire on behalf of a caller."""
    return file.startswith(OURS) or any(part in file for part in PASSED_THROUGH)


def forgotten(kept: list[Any]) -> list[Any]:
    """Return the leases in ``kept``, a list of a dict's keys, that nothing else refers to."""
    return [one for one, count in zip(kept, _references(kept), strict=True) if count <= _FEWEST]


def _references(kept: list[Any]) -> list[int]:
    return [sys.getrefcount(one) for one in kept]


def _fewest() -> int:
    """Return the number of references to an object that only a dict and a list of its keys refer to."""
    known = {object(): None}
    return _references(list(known))[0]


_FEWEST = _fewest()
