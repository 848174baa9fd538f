"""Long lists of cases to try: a part of them in ``make test``, another one each time; all of them in the long form.

In a run of everything (``TESTS_EVERY``, see tests/run.py) it is a smaller part than where the tests are named.
"""

import itertools
import os
import secrets
from collections.abc import Iterator, Sequence
from typing import TypeVar

from hypothesis import settings

EVERY = int(os.environ.get("TESTS_EVERY", "1"))  # of very many alike, such as lines to be interrupted at
EACH = 4 * EVERY
T = TypeVar("T")


def parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield, again and again, another part of ``values``; so that several things tried see all of them together."""
    if settings.get_current_profile_name() == "long":
        return itertools.repeat(values)
    first = secrets.randbelow(EACH)
    return itertools.cycle([values[(first + share) % EACH :: EACH] for share in range(EACH)])
