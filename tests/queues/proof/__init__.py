"""Proof: real servers share queues while others come, go and fail, and a judge who never asks the database.

``python -m tests.queues.proof --help``; what it throws and how it judges: docs/reliability.md.
"""
