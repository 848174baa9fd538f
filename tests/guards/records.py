"""The guards of history, jobs, sweeps and statistics."""

from tests.guards.mutation import Mutation

RECORDS = (
    Mutation(
        "a sweep clears leases that run",
        "sweeps/expired.py",
        "model).expired().annotate",
        "model).all().annotate",
        ("tests/sweeps",),
    ),
    Mutation(
        "a job is done twice at once",
        "jobs/running.py",
        "    if lease is None:\n        return None",
        "    assert lease is not None",
        ("tests/jobs",),
    ),
)
