"""Keeps what failing functions knew out of error reports, which show the local variables of each.

Django's ``sensitive_variables`` cannot do it for generators, nor for what they call: when they have ended, nobody knows
who called them.
"""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def clear_frame_variables() -> Iterator[None]:
    """Clear the local variables of all functions that an error ends here; its report still says where it was."""
    try:
        yield
    except BaseException as error:
        _forget(error)
        raise


def _forget(error: BaseException | None) -> None:
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
