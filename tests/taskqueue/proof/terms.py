"""What is asked for, and what the run and its workers agree on; times in seconds."""

from dataclasses import dataclass

from tests.proof.plan import Plan, option

STREAM = "proof"
TERM_TTL = 1.5
TYPE = "work"
GRACE = 2.0  # within which a worker that is asked to leave ends the work in hand


@dataclass(frozen=True, kw_only=True)
class StreamPlan(Plan):
    """How many tasks, in how many lanes; with a Redis that is restarted, if there is one."""

    tasks: int = option(2_000)
    lanes: int = option(1)
    every: float = option(3.0, "between two faults", "SECONDS")
    hints: bool = True
