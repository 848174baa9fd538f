"""This process's own clock, under the name by which leases know it; see ``resourcepool.clock``."""

from resourcepool.clock import monotonic

__all__ = ["monotonic"]
