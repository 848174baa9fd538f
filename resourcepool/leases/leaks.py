"""Leaked leases: no code refers to their handle, so no code can release them.

As in HikariCP, a leaked lease is only reported. It is still renewed, because the code that dropped the handle may still
use the resource.

The keeper needs the handle itself, for ``on_lost`` and for the release at exit, so a ``weakref`` does not work: a lease
is leaked when only the keeper refers to it. A finalizer does not work either: Python drops an exception that a signal
handler raises in one, and Ctrl-C would be lost. References are counted once per round; an acquire pays nothing for it.
"""

import sys
from typing import Any


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
