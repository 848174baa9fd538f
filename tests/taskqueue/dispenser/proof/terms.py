"""What the run and its workers have agreed on; times in seconds."""

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
