"""This process's monotonic clock, as imported by leases; see ``resourcepool.clock``."""

from resourcepool.clock import monotonic

__all__ = ["monotonic"]
