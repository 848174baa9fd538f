"""Waiting until somebody tells: conditions, and what is built on the same line."""
