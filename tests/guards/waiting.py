"""The guards of the line: who is served, and who is passed."""

from tests.guards.mutation import LINE, VERBS, Mutation

WAITING = (
    Mutation(
        "who was offered it only now has time",
        "leases/lying.py",
        "and now - self._offered.get(ticket, now) >= STEP",
        "",
        ("tests/leases/test_lying.py",),
    ),
    Mutation(
        "who has just woken is not skipped again",
        "leases/tickets.py",
        "OR {skipped_until} < {speaks.later})",
        "OR 1 = 1 OR {skipped_until} < {speaks.later})",
        ("tests/resources/test_line.py",),
    ),
    Mutation(
        "who sleeps in line is skipped by all",
        LINE,
        "tickets.skip(self._connection, sleepers, ticket_ttl())",
        "pass",
        ("tests/concurrency/test_line.py",),
    ),
    Mutation(
        "who wakes is not skipped any more",
        LINE,
        "        if is_skipped:\n",
        "        if False:\n",
        ("tests/concurrency/test_line.py",),
    ),
    Mutation(
        "who sleeps in line is left nothing",
        "leases/tickets.py",
        'alive += f" AND ({until} IS NULL OR {until} <= {speaks.indexed_now})"',
        'alive += ""',
        ("tests/concurrency/test_line.py",),
    ),
    Mutation(
        "ours are served though skipped",
        LINE,
        "if not skipped:\n",
        "if True:\n",
        (
            "tests/resources/test_line.py",
            "tests/resources/test_poller.py",
        ),
    ),
    Mutation(
        "several are left lying early",
        "leases/lying.py",
        "if now - max((self._since[pk][1]",
        "if now - min((self._since[pk][1]",
        ("tests/leases/test_lying.py",),
    ),
    Mutation(
        "further ones in line wait longer",
        "leases/lying.py",
        "+ STEP * (max(rank, 0) + 1)",
        "+ STEP",
        ("tests/leases/test_lying.py",),
    ),
    Mutation(
        '"nobody waits" out of claim',
        VERBS,
        "        if wanted.behind_waiters:\n            sql +=",
        "        if False:\n            sql +=",
        ("tests/leases/test_contract.py", "tests/resources/test_line.py", "tests/resources/test_poller.py"),
    ),
    Mutation(
        "a ticket for many keeps nothing",
        "leases/waiting.py",
        "        taken.update(found)\n        if len(found) == place.count:\n",
        "        if len(found) == place.count:\n            taken.update(found)\n",
        ("tests/leases/test_waiting.py",),
    ),
    Mutation(
        "who gave up keeps what came late",
        "leases/waiting.py",
        "                lease.abandon()",
        "                pass",
        (
            "tests/resources/test_line.py",
            "tests/resources/test_poller.py",
        ),
    ),
    Mutation(
        "dead waiters stay in line",
        "leases/tickets.py",
        'alive = f"{pool} = %s AND {table.busy_before} > {speaks.indexed_now}"',
        'alive = f"{pool} = %s"',
        ("tests/leases/test_tickets.py",),
    ),
    Mutation(
        "priorities are ignored",
        "leases/tickets.py",
        'f"WHERE {alive} ORDER BY {priority}, {table.pk} LIMIT %s"',
        'f"WHERE {alive} ORDER BY {table.pk} LIMIT %s"',
        ("tests/leases/test_tickets.py",),
    ),
)
