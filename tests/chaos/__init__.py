"""Chaos: real processes share rows while everything around them fails; the checker never asks the database.

``python -m tests.chaos --help``; what it throws, how it judges and what it does not show: see
docs/internals/reliability.md.
"""
