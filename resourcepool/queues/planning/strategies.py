"""The strategies by the names used in settings and on pages."""

from resourcepool.queues.planning.assignment import Strategy
from resourcepool.queues.planning.round_robin import round_robin
from resourcepool.queues.planning.sticky import sticky

STRATEGIES: dict[str, Strategy] = {"sticky": sticky, "round_robin": round_robin}
