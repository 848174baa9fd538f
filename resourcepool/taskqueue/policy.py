"""Which tasks may begin, and what happens to a task that was not done: pure decisions."""

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
    """How a stream treats its tasks; see the fields of ``Stream``. Times in seconds."""

    on_failure: str
    retries: int
    retry_delay: float
    max_crashes: int
    lanes: int
    done_kept: float
    is_paused: bool


class Verdict(NamedTuple):
    """What a task becomes: its state, and after how many seconds it may be tried again."""

    state: Task.State
    delay: float = 0.0

    @property
    def is_finished(self) -> bool:
        return self.state not in UNFINISHED


class End(NamedTuple):
    """How an attempt ends; ``verdict`` None: the task is deleted; ``counts``: new failures and deaths, if changed."""

    verdict: Verdict | None
    outcome: str
    counts: tuple[int, int] | None = None


def after_failure(policy: Policy, failures: int) -> Verdict:
    """Judge a task that has failed ``failures`` times, this time included."""
    if failures <= policy.retries:
        return Verdict(State.READY, policy.retry_delay)
    return final_verdict(policy)


def after_lost_connection(policy: Policy, crashes: int) -> Verdict | None:
    """Judge a task that failed by a lost connection after so many deaths; it counts as one. None: it has failed.

    Not at once: what it needs may be away. A task that ends its sessions itself fails as others do in the end.
    """
    return Verdict(State.READY, policy.retry_delay) if crashes + 1 < policy.max_crashes else None


def final_verdict(policy: Policy) -> Verdict:
    """Judge a task that is not tried again by itself."""
    return Verdict(GIVEN_UP[Stream.OnFailure(policy.on_failure)])


def after_crash(policy: Policy, crashes: int) -> Verdict | None:
    """Judge a task whose process has died in ``crashes`` attempts, this one included; None: it is run again."""
    if crashes < policy.max_crashes:
        return None
    verdict = final_verdict(policy)
    # A task that kills its process must not come first again, whatever the policy for failures is.
    return verdict if verdict.state is State.BLOCKED else Verdict(State.DEAD)


def crashes_left(policy: Policy, crashes: int) -> int:
    """Return how many deaths a task keeps whose attempt has failed, and not killed its process.

    The first one may have been the work of a task in another lane. Every later one was its own: it ran alone.
    """
    return 0 if policy.lanes > 1 and crashes == 1 else crashes


class TaskSnapshot(NamedTuple):
    """An unfinished task as it was seen; ``due_in``: microseconds until it may begin; 0 or less: now."""

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
    """``begin``: the tasks that may begin; ``waits``: lanes in which none may, with the seconds until then.

    ``left``: tasks that might begin where a consumer has a handler for them.
    """

    begin: list[TaskSnapshot]
    waits: dict[str, float]
    left: list[TaskSnapshot]


def choose(
    heads: Sequence[TaskSnapshot],
    in_hand: Mapping[int, int],
    *,
    by_lane: bool,
    free: int,
    max_crashes: int,
    known: Container[str],
) -> Choice:
    """Choose up to ``free`` of these tasks, of each lane only the first one.

    A task whose process has died runs alone: it waits until no task is in hand, and nothing begins beside it. So a
    task that kills its process harms no other, and one that does not is known to be innocent. No task waits for one
    that is not run again because its process has died ``max_crashes`` times.

    Args:
        heads: unfinished tasks in order.
        in_hand: the tasks that this consumer is running, {primary key: deaths}.
        by_lane: whether each lane has an order of its own; else the stream is one lane.
        known: the types that this consumer has handlers for.
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
            choice.left.append(head)
        elif may_begin and len(choice.begin) < free:
            if 0 < head.crashes < max_crashes:
                may_begin = False
                if in_hand or choice.begin:
                    continue
            choice.begin.append(head)
    return choice
