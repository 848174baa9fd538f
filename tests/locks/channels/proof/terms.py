"""What is asked for, and what the run and its workers have agreed on; times in seconds."""

import os
from dataclasses import dataclass

from tests.proof.plan import Plan, option

CHANNEL = "proof"
NAMES = ("a", "b")
TTL = 2.0
MESSAGES = int(os.environ.get("PROOF_MESSAGES", "20000"))


@dataclass(frozen=True, kw_only=True)
class ChannelPlan(Plan):
    """How many messages."""

    messages: int = option(20_000)
    every: float = option(2.0, "between two faults", "SECONDS")
