"""Proof: real servers share queues while others start, stop and fail; the judge does not use the database.

``python -m tests.queues.proof --help``; faults and judgement: docs/internals/reliability.md.
"""
