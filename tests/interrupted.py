"""Interrupts Python code at every place, also where a signal handler could raise: before any of its instructions."""

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")


class Interruption(BaseException):
    """What the handler raises."""


class _After:
    """Counts instructions; raises at the one with this number."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            self.left -= 1
            if self.left < 0:
                sys.settrace(None)
                raise Interruption
        return self


def interrupted_everywhere(make: Callable[[], T], act: Callable[[T], object]) -> Iterator[T]:
    """Let ``act`` do its work on a new thing again and again, each time interrupted one instruction later.

    Yields:
        Each of the things, just after the interruption; at last one at which nothing was interrupted.
    """
    number, was_interrupted = 0, True
    while was_interrupted:
        thing = make()
        before = sys.gettrace()
        sys.settrace(_After(number))
        try:
            act(thing)
            was_interrupted = False
        except Interruption:
            pass
        finally:
            sys.settrace(before)
        number += 1
        yield thing
