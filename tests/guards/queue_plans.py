"""The guards of the plan: which server shall have which queue, and when."""

from tests.guards.mutation import Mutation

PLANNING = "queues/planning/changes.py"
PLANS = ("tests/queues/planning/test_changes.py",)
MOVES = ("tests/queues/test_reassignment.py", "tests/queues/test_planning_transactions.py")
OUTAGES = ("tests/queues/test_outages.py", "tests/queues/test_outage_tracker.py")

QUEUE_PLANS = (
    Mutation(
        "queues: a dead server gets nothing",
        PLANNING,
        "return self.is_alive and not self.is_draining",
        "return not self.is_draining",
        MOVES,
    ),
    Mutation(
        "queues: a draining server gets nothing",
        PLANNING,
        "server.member.pk in staying and not server.is_draining]",
        "server.member.pk in staying]",
        PLANS,
    ),
    Mutation(
        "queues: what is asked for by a draining server is not handed over",
        PLANNING,
        "return self.is_alive and not self.is_draining",
        "return self.is_alive",
        (*PLANS, *MOVES),
    ),
    Mutation(
        "queues: who is spared is given nothing",
        PLANNING,
        "return member if server.is_alive else replace(member, limit=most)",
        "return member",
        OUTAGES,
    ),
    Mutation(
        "queues: who comes back judges nobody",
        "queues/serving/registration.py",
        '{"leaving": [after], "spare_overdue": True}',
        '{"leaving": [after]}',
        OUTAGES,
    ),
    Mutation(
        "queues: who comes back has what it had",
        "queues/serving/registration.py",
        "            _inherit(using, locked, after, row)\n",
        "            pass\n",
        OUTAGES,
    ),
    Mutation(
        "queues: who notices an outage judges nobody for a while",
        "queues/serving/membership.py",
        '"spare_overdue": self._outages.is_sparing(monotonic())',
        '"spare_overdue": False',
        OUTAGES,
    ),
    Mutation(
        "queues: nobody goes to the queue group's row for those it spare_overdue",
        "queues/serving/snapshot.py",
        "max(seen.plan_in, self.sparing_until - seen.sent_at)",
        "seen.plan_in",
        OUTAGES,
    ),
    Mutation(
        "queues: a dead server has nothing",
        PLANNING,
        "staying = {pk for pk, server in by_pk.items() if server.is_there} - set(leaving)",
        "staying = set(by_pk) - set(leaving)",
        PLANS,
    ),
    Mutation(
        "queues: who leaves has nothing",
        PLANNING,
        "if server.is_there} - set(leaving)",
        "if server.is_there}",
        PLANS,
    ),
    Mutation(
        "queues: a living owner is asked first",
        PLANNING,
        "return Action.REQUESTED, self._why_asked",
        "return Action.ASSIGNED, self._why_asked",
        PLANS,
    ),
    Mutation(
        "queues: a queue asked for by a dead one is not handed over",
        PLANNING,
        "elif queue.req in takers:",
        "elif queue.req is not None:",
        PLANS,
    ),
    Mutation(
        "queues: what was given up in doubt gets a new fence",
        PLANNING,
        "elif queue.pk in in_doubt:",
        "elif False:",
        PLANS,
    ),
    Mutation(
        "queues: nobody takes over before handover_timeout",
        PLANNING,
        "max(handover_timeout, ttl + MAX_COMMIT_DELAY)",
        "ttl + MAX_COMMIT_DELAY",
        PLANS,
    ),
    Mutation(
        "queues: nobody takes over before the owner's ttl",
        PLANNING,
        "max(handover_timeout, ttl + MAX_COMMIT_DELAY)",
        "handover_timeout",
        PLANS,
    ),
    Mutation(
        "queues: nor before its last look could have seen the request",
        PLANNING,
        "max(handover_timeout, ttl + MAX_COMMIT_DELAY)",
        "max(handover_timeout, ttl)",
        (*PLANS, "tests/queues/serving/test_snapshot.py"),
    ),
    Mutation(
        "queues: a queue worked on is not removed",
        PLANNING,
        "        if owner is None:",
        "        if owner is None or queue.is_retiring:",
        PLANS,
    ),
)
