"""Periodic clean-up, reports and records. Leases are correct without it."""
