"""What is asked for, and what the run and its workers have agreed on; times in seconds."""

from dataclasses import dataclass

from tests.proof.plan import Plan, option

NAME = "proof"
TTL = 1.5
MOST = 20  # tasks that a worker asks for
TWINS = "twins"  # the name that several processes have at the same time
MARGIN = 60.0  # by which a mapping is said to be older than it is: no transaction with tasks_done takes longer
GHOSTS = 40  # keys beyond the tasks that come and go with the rebuilds
MOVING = 50  # one key in so many gets another score with each rebuild


def is_moving(key: int) -> bool:
    """Whether rebuilds change this task's score."""
    return key % MOVING == 7


def score(key: int, tasks: int) -> float:
    """Return a task's score: another order than that of the keys, some of them equal."""
    return float(key * 7919 % tasks // 3)


@dataclass(frozen=True, kw_only=True)
class DispenserPlan(Plan):
    """How many tasks."""

    tasks: int = option(100_000)
    every: float = option(0.7, "between two faults", "SECONDS")
    patience: float = option(60.0, "without anything done: the end", "SECONDS")
