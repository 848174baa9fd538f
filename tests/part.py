"""Long lists of cases to try: a part of them in ``make test``, another one each time; all of them in the long form.

In a run of everything (``TESTS_EVERY``, ``TESTS_TURN``: see tests/run.py) it is a smaller part than where the tests
are named.
"""

import itertools
import os
import secrets
from collections.abc import Iterator, Sequence
from typing import TypeVar

from hypothesis import settings

EVERY = int(os.environ.get("TESTS_EVERY", "1"))  # of very many alike, such as lines to be interrupted at
EACH = 4 * EVERY
TURN = int(os.environ["TESTS_TURN"]) if "TESTS_TURN" in os.environ else None  # drawn for a run of everything
T = TypeVar("T")


def some(cases: Sequence[T], of: int = 3) -> Sequence[T]:
    """Return every third case (or one in ``of``), others each time, in a run of everything; else all of them.

    For the parameters of a test: all processes that share a run make the same choice.
    """
    if TURN is None or settings.get_current_profile_name() == "long":
        return cases
    return cases[TURN % of :: of]


def parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield, again and again, another part of ``values``; so that several things tried see all of them together."""
    if settings.get_current_profile_name() == "long":
        return itertools.repeat(values)
    first = secrets.randbelow(EACH)
    return itertools.cycle([values[(first + share) % EACH :: EACH] for share in range(EACH)])
