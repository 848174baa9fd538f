"""The strategies by the names that settings and pages use."""

from resourcepool.queues.planning.assignment import Strategy
from resourcepool.queues.planning.round_robin import round_robin
from resourcepool.queues.planning.sticky import sticky

STRATEGIES: dict[str, Strategy] = {"sticky": sticky, "round_robin": round_robin}
