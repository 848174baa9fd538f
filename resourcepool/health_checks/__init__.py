"""Validity checks (R0.7): whether each resource is still usable. The check leases it, like any holder."""
