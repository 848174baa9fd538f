"""Which tasks may begin now: a pure decision."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from resourcepool.taskqueue.models import Task


class Head(NamedTuple):
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
    deaths: int
    term: int
    due_in: int


class Choice(NamedTuple):
    """``begin``: the tasks that may begin; ``waits``: lanes in which none may, with the seconds until then."""

    begin: list[Head]
    waits: dict[str, float]


def choose(
    heads: Sequence[Head], in_hand: Mapping[int, int], *, by_lane: bool, free: int, most_deaths: int
) -> Choice:
    """Choose up to ``free`` of these tasks, of each lane only the first one.

    A task whose process has died runs alone: it waits until no task is in hand, and nothing begins beside it. So a
    task that kills its process harms no other, and one that does not is known to be innocent. No task waits for one
    that is not run again because its process has died ``most_deaths`` times.

    Args:
        heads: unfinished tasks in order.
        in_hand: the tasks that this consumer is running, {primary key: deaths}.
        by_lane: whether each lane has an order of its own; else the stream is one lane.
    """
    seen: set[str] = set()
    choice = Choice([], {})
    may_begin = not any(in_hand.values())
    for head in heads:
        lane = head.lane if by_lane else ""
        if lane in seen:
            continue
        seen.add(lane)
        if head.pk in in_hand or head.state == Task.State.BLOCKED:
            choice.waits[lane] = math.inf
        elif head.state == Task.State.READY and head.due_in > 0:
            choice.waits[lane] = head.due_in / 1_000_000
        elif may_begin and len(choice.begin) < free:
            if 0 < head.deaths < most_deaths:
                may_begin = False
                if in_hand or choice.begin:
                    continue
            choice.begin.append(head)
    return choice
