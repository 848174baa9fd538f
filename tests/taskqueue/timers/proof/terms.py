"""What is asked for, and what the run and its nodes have agreed on; times in seconds."""

from dataclasses import dataclass

from tests.proof.plan import Plan, option

TOPIC = "proof"
TTL = 2.0
GRACE = 10.0
THREADS = 8


@dataclass(frozen=True, kw_only=True)
class TimerPlan(Plan):
    """How many timers, and when."""

    timers: int = option(20_000)
    over: float = option(60.0, "in which they are due", "SECONDS")
    every: float = option(2.0, "between two kills or stops", "SECONDS")
