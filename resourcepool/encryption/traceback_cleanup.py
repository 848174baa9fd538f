"""Keeps local variables of failing functions out of error reports.

Django's ``sensitive_variables`` does not cover generators and the functions that they call.
"""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def clear_frame_variables() -> Iterator[None]:
    """Clear the local variables in the traceback of an error that leaves the block; files and lines stay."""
    try:
        yield
    except BaseException as error:
        _forget(error)
        raise


def _forget(error: BaseException | None) -> None:
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
