"""Inspects the package's stack frames while it works, because error reports show their local variables."""

import inspect
import itertools
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from django.views.debug import SafeExceptionReporterFilter

import resourcepool

OURS = str(Path(resourcepool.__file__).parent) + os.sep
HIDING = (
    "sensitive_variables_wrapper"  # Django shows no local variable of a function that was called by this one
)
WITHOUT_CALLER = (
    inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
)  # once they have ended
DEEP = 4  # containers within containers that are looked into


@contextmanager
def looked_into(*secrets: str) -> Iterator[set[str]]:
    """Note each local variable of a function of the package, in any thread, that has one of these as it ends."""
    found: set[str] = set()

    def look(frame: FrameType, event: str, _: Any) -> None:
        if event != "return" or not frame.f_code.co_filename.startswith(OURS):
            return
        shown = [name for name, value in frame.f_locals.items() if _has(value, secrets)]
        if shown and not _is_hidden(frame):
            found.update(
                f"{frame.f_code.co_filename.removeprefix(OURS)}: {frame.f_code.co_qualname}: {name}"
                for name in shown
            )

    before = sys.getprofile()
    threading.setprofile(look)
    sys.setprofile(look)
    try:
        yield found
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


def _is_hidden(frame: FrameType) -> bool:
    caller = None if frame.f_code.co_flags & WITHOUT_CALLER else frame.f_back
    while caller is not None:
        if caller.f_code.co_name == HIDING:
            return True
        caller = None if caller.f_code.co_flags & WITHOUT_CALLER else caller.f_back
    return False


def _has(value: Any, secrets: tuple[str, ...], depth: int = DEEP) -> bool:
    """Tell whether a report of ``value`` has one of these. Calls nothing of it, for that may ask the database."""
    if isinstance(value, bytes | bytearray):
        value = value.decode(errors="replace")
    if isinstance(value, str):
        return any(secret in value for secret in secrets)
    if depth == 0:
        return False
    if isinstance(value, Mapping) and type(value).__module__ in ("builtins", "collections", "types"):
        value = [*value.keys(), *value.values()]
    elif isinstance(value, BaseException):
        value = value.args
    if isinstance(value, list | tuple | set | frozenset):
        return any(_has(part, secrets, depth - 1) for part in value)
    if "__dataclass_fields__" in vars(type(value)):
        shown = [name for name, one in type(value).__dataclass_fields__.items() if one.repr]
        return any(_has(getattr(value, name, None), secrets, depth - 1) for name in shown)
    return False


class Failure(Exception):
    """What is raised inside."""


def failures_inside(work: Callable[[], Any]) -> Iterator[BaseException]:
    """Call ``work`` until it comes through, each time failing as a later function of the package ends.

    Yield what it raises; at last the error of its own, if it has one.
    """
    for number in itertools.count():
        is_broken, error = _broken(work, number)
        if error is not None:
            yield error
        if not is_broken:
            return


def _broken(work: Callable[[], Any], number: int) -> tuple[bool, Exception | None]:
    """Return whether so many functions ended, and what was raised."""
    ended = itertools.count()
    broken = []

    def fail(frame: FrameType, event: str, result: Any) -> None:
        is_closed = frame.f_code.co_flags & inspect.CO_GENERATOR and result is None
        if event != "return" or is_closed or not frame.f_code.co_filename.startswith(OURS):
            return
        if next(ended) == number:
            broken.append(frame)
            raise Failure

    before = sys.getprofile()
    sys.setprofile(fail)
    try:
        work()
    except Exception as error:  # noqa: BLE001 (looked into)
        return bool(broken), error
    finally:
        sys.setprofile(before)
    return bool(broken), None


def shown_by(error: BaseException | None, *secrets: str) -> set[str]:
    """Return the local variables of the package that Django's report of ``error`` shows one of these in."""
    found = set()
    while error is not None:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_filename.startswith(OURS):
                variables = SafeExceptionReporterFilter().get_traceback_frame_variables(None, frame)
                found |= {
                    f"{frame.f_code.co_qualname}: {name}" for name, value in variables if _has(value, secrets)
                }
        error = error.__cause__ or error.__context__
    return found
