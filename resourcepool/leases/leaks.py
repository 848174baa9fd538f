"""Leaked leases: no code refers to their handle, so no code can release them; or they are held for too long.

As in HikariCP, a leaked lease is only reported, with the line that acquired it. It is still renewed, because the code
that dropped the handle may still use the resource.

The keeper needs the handle itself, for ``on_lost`` and for the release at exit, so a ``weakref`` does not work: a lease
is leaked when only the keeper refers to it. A finalizer does not work either: Python drops Ctrl-C in one. References
are counted once per round; an acquire pays nothing for it.
"""

import functools
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

PACKAGE = str(Path(__file__).resolve().parent.parent)
WRAPPERS = ("contextlib.py", "/asgiref/", "/concurrent/futures/", "threading.py", "/django/utils/asyncio.py")

SourceLine = tuple[CodeType, int]  # in the caller's code, and the line


def unreferenced(leases: list[Any]) -> list[Any]:
    """Return the leases that nothing refers to but a dict and this list of its keys."""
    return [lease for lease, count in zip(leases, _references(leases), strict=True) if count <= _MIN_REFERENCES]


def _references(leases: list[Any]) -> list[int]:
    return [sys.getrefcount(lease) for lease in leases]


def _min_references() -> int:
    """Return the reference count of an object that only a dict and a list of its keys refer to."""
    objects = {object(): None}
    return _references(list(objects))[0]


_MIN_REFERENCES = _min_references()


def caller_location() -> SourceLine | None:
    """Return the nearest caller outside this package; None if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not _is_wrapper(frame.f_code.co_filename):
            return frame.f_code, frame.f_lineno
        frame = frame.f_back
    return None


@functools.lru_cache(1_000)
def _is_wrapper(file: str) -> bool:
    """Whether functions in this file acquire only on behalf of a caller."""
    return file.startswith(PACKAGE) or any(part in file for part in WRAPPERS)


def format_location(location: SourceLine) -> str:
    """Return "file:line in function"."""
    code, line = location
    return f"{code.co_filename}:{line} in {code.co_name}"
