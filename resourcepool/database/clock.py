"""This process's own clock, under the name that leases use; see ``resourcepool.clock``."""

from resourcepool.clock import monotonic

__all__ = ["monotonic"]
