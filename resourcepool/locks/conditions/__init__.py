"""Conditions, and barriers, which notify their waiters in the same way."""
