"""What is asked for; the settings of the servers of a proof, in seconds, and the promises that follow."""

from dataclasses import dataclass

from tests.proof.plan import Plan, option

QUEUES = 64
HEARTBEAT, JUDGE_DEAD, RELOAD, DRAIN = 1.0, 3.0, 0.1, 8.0
QUEUE_GROUP = "proof"

UNWORKED = JUDGE_DEAD + 2 * HEARTBEAT  # maximum time without work on a queue
HANDED_OVER = 2 * HEARTBEAT  # the same when a server leaves or joins


@dataclass(frozen=True, kw_only=True)
class QueuePlan(Plan):
    """For how long."""

    minutes: float = option(0.0, "how long; default: one of everything, and no storm")
    at_any_speed: bool = option(False, "excuse what a busy machine may be late with")
