"""What is asked for, and what the parts of the proof agree on."""

from dataclasses import dataclass

from tests.proof.plan import Plan, option

SETTINGS = "tests.locks.proof.settings"
TTL, TICKET_TTL = 2.0, 4.0  # seconds
LOCKS = 3
PERMITS = 3
READERS = (2, 4)  # one of these at a time
CAPACITY = 1  # of the buffer: who puts something in, or takes it out, often has to wait for another one
LOCK, SEMAPHORE, RWLOCK, BUFFER = "lock", "semaphore", "catalogue", "buffer"
NOT_EMPTY, NOT_FULL = "not-empty", "not-full"
PRODUCED, CONSUMED = 1_000, 1_001  # pages of steps: who put an item there, and who took it


@dataclass(frozen=True, kw_only=True)
class LockPlan(Plan):
    """For how long."""

    seconds: float = option(60.0, "how long", "SECONDS")
    every: float = option(1.0, "between two faults", "SECONDS")
    hints: bool = option(False, "have a Redis tell who waits, and kill it, and let it hang")
