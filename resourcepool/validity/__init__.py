"""Validity checks (R0.7): is each resource still usable? The check leases it, like any other holder."""
