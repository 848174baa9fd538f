"""Forgotten leases: no code can give them back any more.

The idea is HikariCP's leak detection. A forgotten lease is renewed all the same, because the code that dropped the
handle may still use the resource.

References are counted, rather than a ``weakref`` watched, because the keeper has to have the handle itself:
``on_lost`` is called with it, it is renewed when it is forgotten, and released at the end of the process. A finalizer
that brings it back would have to be Python code, and Python drops an exception that a signal handler raises in one:
Ctrl-C would be lost. A count is taken once per beat; an acquire pays nothing for it.
"""

import sys
from typing import Any


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
