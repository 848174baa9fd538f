"""Interrupts work like a signal handler, at each Python line, one after the other."""

import dis
import secrets
import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import resourcepool

OURS = str(Path(resourcepool.__file__).parent)
TESTS = str(Path(__file__).parent)
FILES = (OURS, "/contextlib.py")
GRANTING = ("claim", "claim_all", "adopt", "take")  # functions that get something, or a ticket for it


class Interruption(BaseException):
    """What the handler raises."""


def interrupt() -> None:
    raise Interruption


def nothing() -> None: ...


def at_each_line(
    work: Callable[[], Any],
    prepare: Callable[[], Any] = nothing,
    *,
    handler: Callable[[], Any] = interrupt,
    files: Collection[str] = FILES,
    since: Collection[str] = GRANTING,
    at_most: int = 5_000,
    every: int = 1,
) -> Iterator[str]:
    """Call ``work`` again and again, each time interrupted one line later, until it comes through; yield where it was.

    Args:
        prepare: called before, and not interrupted.
        handler: what interrupts it.
        files: parts of the paths of those whose lines count; the beginning of a function counts as one.
        since: functions of which one has to be called before it is interrupted; none: from the beginning.
        every: not at each line but at every second, third .. one, from any of the first ones on.
    """
    prepare()
    work()  # so that what it remembers does not make it shorter in between
    for number in range(secrets.randbelow(every), at_most, every):
        prepare()
        if (place := _interrupted(work, number, handler, files, since)) is None:
            return
        yield place
    raise AssertionError(f"still interrupted at line {at_most}")


def _interrupted(
    work: Callable[[], Any],
    number: int,
    handler: Callable[[], Any],
    files: Collection[str],
    since: Collection[str],
) -> str | None:
    """Call ``work``, interrupted at its line ``number``; return where that was, None if there is no such line."""
    left, place, has_begun = number, "", not since

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left, place, has_begun
        if not _counts(frame, files):
            return None
        has_begun = has_begun or frame.f_code.co_name in since
        if event in ("call", "line") and has_begun and not place:
            if left <= 0 and not _is_deaf(frame):
                place = f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name} ({event})"
                handler()
            left -= 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except Interruption:
        pass
    finally:
        sys.settrace(before)
    return place or None


def _counts(frame: FrameType, files: Collection[str]) -> bool:
    """Whether it is in one of these files, and called by one of them: what Django calls is up to Django."""
    caller = frame.f_back.f_code.co_filename if frame.f_back else ""
    where = frame.f_code.co_filename
    is_called = where.startswith(OURS) or "/threading.py" in files or caller.startswith((OURS, TESTS))
    return is_called and any(part in where for part in files)


def _is_deaf(frame: FrameType) -> bool:
    """Whether the next step is nothing, or calls ``__exit__``: Python handles no signal just before that."""
    steps = list(dis.get_instructions(frame.f_code))
    following = [one for one in steps if one.offset >= frame.f_lasti][:3]
    if following and following[0].opname == "NOP":  # such as the line of a ``try``
        return True
    return [(one.opname, one.argval) for one in following] == [("LOAD_CONST", None)] * 3


def end() -> None:
    """Called by ``work``: what comes now is not interrupted."""
    sys.settrace(None)
