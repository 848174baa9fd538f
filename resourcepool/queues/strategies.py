"""The strategies by the names that settings and pages use."""

from resourcepool.queues.assignment import Strategy
from resourcepool.queues.round_robin import round_robin
from resourcepool.queues.sticky import sticky

STRATEGIES: dict[str, Strategy] = {"sticky": sticky, "round_robin": round_robin}
