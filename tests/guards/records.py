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
    Mutation(
        "a job that lost its lease writes its result",
        "jobs/running.py",
        ".filter(pk=name, fence=lease.fence)",
        ".filter(pk=name)",
        ("tests/jobs",),
    ),
    Mutation(
        "pruning is one long statement",
        "sweeps/pruning.py",
        "flat=True)[:BATCH])",
        "flat=True))",
        ("tests/sweeps",),
    ),
    Mutation(
        "pruning goes on without its lease",
        "sweeps/pruning.py",
        "            lease.ensure_held()",
        "            pass",
        ("tests/sweeps",),
    ),
    Mutation(
        "what waits for the history grows for ever",
        "history/recorder.py",
        "if len(self._waiting) >= MOST and not fact.actor:",
        "if False:",
        ("tests/history",),
    ),
    Mutation(
        "what an operator did may be dropped",
        "history/recorder.py",
        " and not fact.actor:",
        ":",
        ("tests/history",),
    ),
    Mutation(
        "what failed to be written is forgotten",
        "history/recorder.py",
        "                self._waiting.extendleft(reversed(self._in_hand))\n",
        "",
        ("tests/history",),
    ),
    Mutation(
        "a test writes into the real history",
        "history/recorder.py",
        "if database != self._database:",
        "if False:",
        ("tests/history",),
    ),
    Mutation(
        "an alarm is told at every sweep",
        "sweeps/alarming.py",
        "for which in now.keys() - known.keys()",
        "for which in now.keys()",
        ("tests/stats",),
    ),
    Mutation(
        "a pool in trouble keeps the others from being swept",
        "sweeps/sweep.py",
        "        except ResourcePoolError as error:",
        "        except KeyError as error:",
        ("tests/sweeps",),
    ),
    Mutation(
        "a lease that ran out is told twice",
        "sweeps/overtaken.py",
        "lost = begun.filter(Exists(successor), ~Exists(told))",
        "lost = begun.filter(Exists(successor))",
        ("tests/sweeps",),
    ),
    Mutation(
        "what is held counts as not checked",
        "stats/alarms.py",
        " or not pool.counts[State.FREE]",
        "",
        ("tests/stats",),
    ),
    Mutation(
        "a moment's failure ends a job",
        "jobs/running.py",
        "retrying(connection, lambda: mine.update(**came_of_it))",
        "mine.update(**came_of_it)",
        ("tests/sweeps/test_trouble.py",),
    ),
)
