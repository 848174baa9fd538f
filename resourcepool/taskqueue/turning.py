"""The loop of a process that has handlers run: turn after turn, until it is to stop and nothing is in hand."""

import logging
from collections.abc import Callable, Sized
from typing import Protocol

from resourcepool.database.answers import answer_timeout
from resourcepool.database.clock import monotonic
from resourcepool.database.wakeup import Wakeup
from resourcepool.exceptions import DatabaseUnavailable

logger = logging.getLogger(__name__)

DRAIN_WITHIN = 30.0  # seconds
PAUSE_AFTER_FAILURE = 0.5  # seconds


class MustEnd(Exception):
    """A handler must not go on, and cannot be stopped: only the end of the process ends it."""


class Turns(Protocol):
    """What has handlers run."""

    @property
    def in_hand(self) -> Sized:
        """What they have, and what of that is not written down yet."""

    def start(self) -> None:
        """Begin. Raises DatabaseUnavailable."""

    def turn(self, *, may_begin: bool) -> float:
        """Write down what has ended, and begin what is due; return when to look again."""

    def renew_if_due(self) -> None:
        """Renew, after a turn that failed, what would have been renewed meanwhile."""

    def stop(self) -> None:
        """Ask the handlers to stop."""

    def cut_off(self, why: str) -> None:
        """Give back what runs; raises MustEnd."""

    def close(self) -> None:
        """End the threads."""


def turn_until_stopped(
    name: str, work: Turns, wakeup: Wakeup, is_stopping: Callable[[], bool], drain_within: float
) -> None:
    """Do so; ``drain_within``: seconds for which handlers may go on after ``is_stopping``. Raises MustEnd."""
    with answer_timeout():
        work.start()
    ends_at: float | None = None
    while ends_at is None or work.in_hand:
        wakeup.reset()
        now = monotonic()
        if is_stopping() and ends_at is None:
            ends_at = now + drain_within
            work.stop()
        try:
            with answer_timeout():
                look_at = work.turn(may_begin=ends_at is None)
        except DatabaseUnavailable as error:
            logger.warning("%s: %s", name, error)
            work.renew_if_due()
            look_at = monotonic() + PAUSE_AFTER_FAILURE  # from now on: the turn may have waited for a lock
        if ends_at is not None and work.in_hand:
            if now > ends_at:
                why = f"{_handlers(work)} did not end within {drain_within:g} s"
                with answer_timeout():
                    work.cut_off(why)
            look_at = min(look_at, ends_at)
        if ends_at is None or work.in_hand:
            wakeup.sleep_until(look_at)


def end_if_in_hand(work: Turns, error: BaseException, die: Callable[[str], object]) -> None:
    """End the process if ``error`` would leave handlers without the loop that looks after them."""
    if work.in_hand:
        said = str(error) or type(error).__name__
        die(f"{said}, while {_handlers(work)} ran")


def _handlers(work: Turns) -> str:
    count = len(work.in_hand)
    return "1 handler" if count == 1 else f"{count} handlers"
