"""The guards of waiting: row and ticket change together, or neither; who has left or expired gets nothing."""

from tests.guards.mutation import Mutation

HANDOVER = "waiting/handover.py"
TICKETS = "waiting/tickets.py"
THE_HANDOVER = (
    "tests/waiting/test_handover.py",
    "tests/waiting/test_assignment.py",
    "tests/waiting/test_handover_lost_replies.py",
)
THE_LINE = (
    "tests/waiting/test_poll.py",
    "tests/waiting/test_poll_trust.py",
    "tests/waiting/test_poll_several.py",
)
THE_TICKETS = ("tests/waiting/test_tickets.py",)

WAITING = (
    Mutation(
        "a ticket whose reply was lost is taken once",
        TICKETS,
        "retrying(connection, send, settle=settle), sent_at",
        "retrying(connection, send), sent_at",
        THE_TICKETS,
        "mariadb",
    ),
    Mutation(
        "fence of the row out of the hand-over",
        HANDOVER,
        'this_row = f"{row.name}.{row.pk} = %(pk)s AND {row.name}.{row.fence} = %(fence)s"',
        'this_row = f"{row.name}.{row.pk} = %(pk)s"',
        THE_HANDOVER,
    ),
    Mutation(
        "fence of the ticket out of the hand-over",
        HANDOVER,
        "{ticket.id} = %(ticket)s AND {ticket.fence} = %(ticket_fence)s ",
        "{ticket.id} = %(ticket)s ",
        THE_HANDOVER,
    ),
    Mutation(
        "a row is given to a dead ticket",
        HANDOVER,
        '            f"AND {ticket.busy_before} > {db_dialect.now}"\n',
        "",
        THE_HANDOVER,
    ),
    Mutation(
        "a row that is held is given out",
        HANDOVER,
        'is_free = f" AND {row.name}.{row.busy_before} <= {db_dialect.now}"',
        'is_free = ""',
        THE_HANDOVER,
    ),
    Mutation(
        "half a hand-over stays",
        HANDOVER,
        "transaction.set_rollback(not done, using=connection.alias)",
        "pass",
        THE_HANDOVER,
    ),
    Mutation(
        "a release does not see waiters",
        HANDOVER,
        'nobody_waits = f"NOT EXISTS (SELECT 1{waiting})"',
        'nobody_waits = "1 = 1"',
        THE_HANDOVER,
    ),
    Mutation(
        "a release in a transaction locks a ticket",
        "waiting/release.py",
        "    if connection.in_atomic_block:\n        _assign_after_commit(connection, model, pk)\n",
        "    if False:\n        _assign_after_commit(connection, model, pk)\n",
        THE_HANDOVER,
    ),
    Mutation(
        "a newcomer takes a row that is due to an earlier waiter",
        "waiting/assignment.py",
        "if only is not None and ticket.pk not in only:",
        "if False:",
        THE_HANDOVER,
    ),
    Mutation(
        "expired tickets stay in line",
        TICKETS,
        'alive = f"{column.busy_before} > {db_dialect.indexed_now}"',
        'alive = "1 = 1"',
        THE_TICKETS,
    ),
    Mutation(
        "trust lasts as if the row had just been given",
        "waiting/turn.py",
        "[Grant(pk, fence, waiter.holder, sent_at, seen.left) for pk, fence in rows]",
        "[Grant(pk, fence, waiter.holder, sent_at, waiter.request.terms.ttl) for pk, fence in rows]",
        THE_LINE,
    ),
    Mutation(
        "a ticket that was served is renewed",
        TICKETS,
        "WHERE {column.is_waiting} = {db_dialect.true} AND {alive} AND {column.id} IN ",
        "WHERE {alive} AND {column.id} IN ",
        THE_TICKETS,
    ),
    Mutation(
        "collected rows that block each other stay",
        "waiting/scan.py",
        "assignment.reclaim_from_later(connection, model, selector)",
        "pass",
        THE_LINE,
    ),
)
