"""Long lists of values to try: a part of them in ``make test``, all of them with HYPOTHESIS_PROFILE=long."""

import itertools
from collections.abc import Iterator, Sequence
from typing import TypeVar

from hypothesis import settings

EACH = 4
T = TypeVar("T")


def parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield, again and again, another fourth of ``values``; so that several things tried see all of them together."""
    if settings.get_current_profile_name() == "long":
        return itertools.repeat(values)
    return itertools.cycle([values[begin::EACH] for begin in range(EACH)])
