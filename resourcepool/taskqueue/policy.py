"""Which tasks may begin, and what happens after a failure or a crash of a task or timer. Pure functions."""

import math
from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from resourcepool.taskqueue.abstract import AttemptSettings
from resourcepool.taskqueue.models import Stream, Task
from resourcepool.text import ascii_escaped

State = Task.State


class Result(NamedTuple):
    """The result of an attempt. ``error`` is None when the task is done or ``is_given_back``.

    ``delay``: seconds until a returned task may begin again.
    ``is_disconnected``: it failed because a connection was lost.
    ``is_lost``: it failed after its lease had ended.
    ``has_begun``: the handler was called.
    ``is_cut_off``: the process exits without waiting for the handler.
    """

    outcome: str
    error: str | None = None
    is_given_back: bool = False
    delay: float = 0.0
    is_disconnected: bool = False
    is_lost: bool = False
    has_begun: bool = True
    is_cut_off: bool = False

    @property
    def how(self) -> str:
        """How the attempt ended, for logs."""
        if self.is_given_back:
            return "released"
        if self.error is None:
            return "handled"
        return "lost its lease" if self.is_lost else "failed"

    def ascii_escaped(self) -> "Result":
        """Return it for a database that cannot store its text; itself if it is ASCII."""
        error = None if self.error is None else ascii_escaped(self.error)
        outcome = ascii_escaped(self.outcome)
        return self if (outcome, error) == self[:2] else self._replace(outcome=outcome, error=error)


GIVEN_BACK = Result("", is_given_back=True)  # by the loop, not by the handler


class End(NamedTuple):
    """The end of an attempt: ``state`` None: delete the row; ``counts``: changed failures and crashes."""

    state: str | None
    outcome: str
    delay: float = 0.0
    counts: tuple[int, int] | None = None


def end_of(settings: AttemptSettings, result: Result, failures: int, crashes: int) -> End:
    """Decide about a task or timer that has failed ``failures`` times and crashed ``crashes`` times before.

    A lost database connection counts as a crash while ``max_crashes`` permits, and then as a failure: it is retried
    after a delay, because the database may be down, but a task that ends its own sessions fails in the end.
    """
    if result is GIVEN_BACK:  # cut off: its crashes stay as they are
        return End(settings.waiting_state, "")
    if result.error is None and not result.is_given_back:
        return End("done" if settings.done_kept else None, result.outcome)
    again, left = settings.waiting_state, settings.crashes_left(crashes)
    if result.error is None:
        state, delay, counts = again, result.delay, (failures, left)
    elif result.is_disconnected and crashes + 1 < settings.max_crashes:
        state, delay, counts = again, settings.retry_delay, (failures, crashes + 1)
    elif failures < settings.retries:
        state, delay, counts = again, settings.delay(failures + 1), (failures + 1, left)
    else:
        state, delay, counts = settings.given_up_state, 0.0, (failures + 1, left)
    outcome = result.outcome if result.error is None else result.error
    return End(state, outcome, delay, None if counts == (failures, crashes) else counts)


def after_crash(stream: Stream, crashes: int) -> str | None:
    """Return the state of a task whose process has crashed ``crashes`` times; None: run it again."""
    if crashes < stream.max_crashes:
        return None
    # A task that kills its process is kept for an operator, also where failed tasks are skipped.
    return State.BLOCKED if stream.given_up_state == State.BLOCKED else State.DEAD


class TaskSnapshot(NamedTuple):
    """An unfinished task as it was read; ``due_in``: microseconds until it may begin; 0 or less: now."""

    pk: int
    fence: int
    key: str
    type: str
    params: str
    lane: str
    state: str
    attempts: int
    failures: int
    crashes: int
    term: int
    due_in: int


class Choice(NamedTuple):
    """Which tasks may begin.

    Attributes:
        begin: the tasks that may begin.
        waits: the lanes in which no task may begin, with the seconds until one may.
        without_handler: tasks that could begin, but have no handler in this process.
    """

    begin: list[TaskSnapshot]
    waits: dict[str, float]
    without_handler: list[TaskSnapshot]


def choose(
    heads: Sequence[TaskSnapshot],
    in_hand: Mapping[int, int],
    *,
    by_lane: bool,
    free: int,
    max_crashes: int,
    known: Container[str],
) -> Choice:
    """Choose up to ``free`` of these tasks, only the first one of each lane.

    A task whose process has crashed runs alone: it waits until no task is running, and no task begins beside it. So a
    task that kills its process harms no other task, and a task that does not is cleared of suspicion. No task waits for
    a task that has reached ``max_crashes``, as this one is not run again.

    Args:
        heads: unfinished tasks in order.
        in_hand: the tasks that this consumer is running, {primary key: crashes}.
        by_lane: whether each lane has its own order; otherwise the stream is a single lane.
        known: the types for which this consumer has handlers.
    """
    seen: set[str] = set()
    choice = Choice([], {}, [])
    may_begin = not any(in_hand.values())
    for head in heads:
        lane = head.lane if by_lane else ""
        if lane in seen:
            continue
        seen.add(lane)
        if head.pk in in_hand or head.state == State.BLOCKED:
            choice.waits[lane] = math.inf
        elif head.state == State.READY and head.due_in > 0:
            choice.waits[lane] = head.due_in / 1_000_000
        elif head.state == State.READY and head.type not in known and head.crashes < max_crashes:
            choice.waits[lane] = math.inf
            choice.without_handler.append(head)
        elif may_begin and len(choice.begin) < free:
            if 0 < head.crashes < max_crashes:
                may_begin = False
                if in_hand or choice.begin:
                    continue
            choice.begin.append(head)
    return choice
