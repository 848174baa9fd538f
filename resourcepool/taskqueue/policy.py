"""What happens to a task that was not done: pure decisions."""

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
    most_deaths: int
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
    return given_up(policy)


def given_up(policy: Policy) -> Verdict:
    """Judge a task that is not tried again by itself."""
    return Verdict(GIVEN_UP[Stream.OnFailure(policy.on_failure)])


def after_death(policy: Policy, deaths: int) -> Verdict | None:
    """Judge a task whose process has died in ``deaths`` attempts, this one included; None: it is run again."""
    if deaths < policy.most_deaths:
        return None
    verdict = given_up(policy)
    # A task that kills its process must not come first again, whatever the policy for failures is.
    return verdict if verdict.state is State.BLOCKED else Verdict(State.DEAD)


def deaths_left(policy: Policy, deaths: int) -> int:
    """Return how many deaths a task keeps whose attempt has failed, and not killed its process.

    The first one may have been the work of a task in another lane. Every later one was its own: it ran alone.
    """
    return 0 if policy.lanes > 1 and deaths == 1 else deaths
