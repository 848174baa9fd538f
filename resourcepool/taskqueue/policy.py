"""Which tasks may begin, and the new state of a task after a failure or a crash. Pure functions."""

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from resourcepool.taskqueue.models import Stream, Task

State = Task.State

GIVEN_UP = {
    Stream.OnFailure.BLOCK: State.BLOCKED,
    Stream.OnFailure.SKIP: State.SKIPPED,
    Stream.OnFailure.DEAD_LETTER: State.DEAD,
}
UNFINISHED = (State.READY, State.RUNNING, State.BLOCKED)


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings of a stream; see the fields of ``Stream``. Times in seconds."""

    on_failure: str
    retries: int
    retry_delay: float
    max_crashes: int
    lanes: int
    done_kept: float
    is_paused: bool


class Decision(NamedTuple):
    """The new state of a task, and the seconds until it may be tried again."""

    state: Task.State
    delay: float = 0.0

    @property
    def is_finished(self) -> bool:
        return self.state not in UNFINISHED


class End(NamedTuple):
    """How an attempt ends; ``decision`` None: delete the task; ``counts``: new failures and crashes, if changed."""

    decision: Decision | None
    outcome: str
    counts: tuple[int, int] | None = None


def after_failure(policy: Policy, failures: int) -> Decision:
    """Decide about a task that has failed ``failures`` times, this failure included."""
    if failures <= policy.retries:
        return Decision(State.READY, policy.retry_delay)
    return final_decision(policy)


def after_lost_connection(policy: Policy, crashes: int) -> Decision | None:
    """Decide about a task that lost its database connection. That counts as a crash; None: as a failure.

    The task is retried after a delay, because the database may be down. A task that ends its own sessions fails in the
    end.
    """
    return Decision(State.READY, policy.retry_delay) if crashes + 1 < policy.max_crashes else None


def final_decision(policy: Policy) -> Decision:
    """Return the decision for a task that is not retried automatically."""
    return Decision(GIVEN_UP[Stream.OnFailure(policy.on_failure)])


def after_crash(policy: Policy, crashes: int) -> Decision | None:
    """Decide about a task whose process has crashed ``crashes`` times; None: run it again."""
    if crashes < policy.max_crashes:
        return None
    decision = final_decision(policy)
    # A task that kills its process is kept for an operator, also where failed tasks are skipped.
    return decision if decision.state is State.BLOCKED else Decision(State.DEAD)


def crashes_left(policy: Policy, crashes: int) -> int:
    """Return the crash count that a task keeps after an attempt without a crash.

    A task of another lane may have caused the first crash. Any later crash is its own: it ran alone.
    """
    return 0 if policy.lanes > 1 and crashes == 1 else crashes


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
