"""Mutations of the plan: which server gets which queue, and when."""

from tests.guards.mutation import Mutation

PLANNING = "queues/planning/changes.py"
PLANS = ("tests/queues/planning/test_changes.py",)
MOVES = ("tests/queues/test_reassignment.py", "tests/queues/test_planning_transactions.py")
OUTAGES = ("tests/queues/test_outages.py", "tests/queues/test_outage_tracker.py")

QUEUE_PLANS = (
    Mutation(
        "queues: a dead server gets no queue",
        PLANNING,
        "return self.is_alive and not self.is_draining",
        "return not self.is_draining",
        MOVES,
    ),
    Mutation(
        "queues: a draining server gets no queue",
        PLANNING,
        "server.member.pk in staying and not server.is_draining]",
        "server.member.pk in staying]",
        PLANS,
    ),
    Mutation(
        "queues: no hand-over to a draining server",
        PLANNING,
        "return self.is_alive and not self.is_draining",
        "return self.is_alive",
        (*PLANS, *MOVES),
    ),
    Mutation(
        "queues: a spared server gets no queue",
        PLANNING,
        "return member if server.is_alive else replace(member, limit=limit)",
        "return member",
        OUTAGES,
    ),
    Mutation(
        "queues: a returning server presumes none dead",
        "queues/serving/registration.py",
        '{"leaving": [after], "spare_overdue": True}',
        '{"leaving": [after]}',
        OUTAGES,
    ),
    Mutation(
        "queues: a returning server inherits its queues",
        "queues/serving/registration.py",
        "            _inherit(using, locked, after, row)\n",
        "            pass\n",
        OUTAGES,
    ),
    Mutation(
        "queues: a server that notices an outage presumes none dead for a while",
        "queues/serving/membership.py",
        '"spare_overdue": self._outages.is_sparing(monotonic())',
        '"spare_overdue": False',
        OUTAGES,
    ),
    Mutation(
        "queues: spared servers make no plan due",
        "queues/serving/snapshot.py",
        "max(seen.plan_in, self.sparing_until - seen.sent_at)",
        "seen.plan_in",
        OUTAGES,
    ),
    Mutation(
        "queues: a dead server keeps no queue",
        PLANNING,
        "staying = {pk for pk, server in by_pk.items() if server.keeps_queues} - set(leaving)",
        "staying = set(by_pk) - set(leaving)",
        PLANS,
    ),
    Mutation(
        "queues: a leaving server keeps no queue",
        PLANNING,
        "if server.keeps_queues} - set(leaving)",
        "if server.keeps_queues}",
        PLANS,
    ),
    Mutation(
        "queues: a living owner gets a request first",
        PLANNING,
        "return Action.REQUESTED, self._why_requested",
        "return Action.ASSIGNED, self._why_requested",
        PLANS,
    ),
    Mutation(
        "queues: no hand-over to a dead requester",
        PLANNING,
        "elif queue.req in takers:",
        "elif queue.req is not None:",
        PLANS,
    ),
    Mutation(
        "queues: a queue in doubt gets a new fence",
        PLANNING,
        "elif queue.pk in in_doubt:",
        "elif False:",
        PLANS,
    ),
    Mutation(
        "queues: no take-over before handover_timeout",
        PLANNING,
        "max(handover_timeout, ttl + MAX_COMMIT_DELAY)",
        "ttl + MAX_COMMIT_DELAY",
        PLANS,
    ),
    Mutation(
        "queues: no take-over before the owner's ttl",
        PLANNING,
        "max(handover_timeout, ttl + MAX_COMMIT_DELAY)",
        "handover_timeout",
        PLANS,
    ),
    Mutation(
        "queues: no take-over before the owner must have stopped",
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
