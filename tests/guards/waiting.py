"""The guards of the line: who is given what, what its holder believes, and who is passed."""

from tests.guards.mutation import LINE, Mutation

HANDOVER, TICKETS, ACQUIRE, ENTERING, ALLOT, WAITER, LEASE = (
    f"waiting/{name}.py" for name in ("handover", "tickets", "acquire", "entering", "allot", "waiter", "lease")
)
THE_HANDOVER = tuple(
    f"tests/waiting/test_{name}.py" for name in ("handover", "giving_out", "handover_lost_replies")
)
THE_LINE = tuple(f"tests/waiting/test_line{end}.py" for end in ("", "_trust", "_several"))
THE_TICKETS = ("tests/waiting/test_tickets.py",)

WAITING = (
    # Row and ticket
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
        '            f"AND {ticket.busy_before} > {speaks.now}"\n',
        "",
        THE_HANDOVER,
    ),
    Mutation(
        "a row out of service is handed over",
        HANDOVER,
        'fits = f"{this_row}{row.claimable_of_row}"',
        "fits = this_row",
        THE_HANDOVER,
    ),
    Mutation(
        "a row that is held is given out",
        HANDOVER,
        'is_free = f" AND {row.name}.{row.busy_before} <= {speaks.now}"',
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
        "a release does not see who waits",
        HANDOVER,
        "{this_row} AND NOT EXISTS (SELECT 1{in_line})",
        "{this_row}",
        THE_HANDOVER,
    ),
    Mutation(
        "a release gives a row that does not fit",
        HANDOVER,
        "for selector, fits in zip(chosen, row, strict=True) if fits}",
        "for selector in chosen}",
        THE_HANDOVER,
    ),
    Mutation(
        "a lost reply hides that the row was handed over",
        HANDOVER,
        "return bool(is_back) or was_given_over.exists()",
        "return bool(is_back)",
        THE_HANDOVER,
    ),
    Mutation(
        "a release in a transaction locks a ticket",
        LEASE,
        "    if connection.in_atomic_block:\n",
        "    if False:\n",
        THE_HANDOVER,
    ),
    Mutation(
        "releases: a process that waits itself does not ask",
        WAITER,
        "        silence.note_somebody(self.line, self.using)\n",
        "",
        ("tests/waiting/test_silence.py",),
    ),
    Mutation(
        "releases: where somebody was served lately nobody asks",
        HANDOVER,
        "    silence.note_somebody(line, using)\n",
        "",
        ("tests/waiting/test_silence.py",),
    ),
    # Who is served
    Mutation(
        "a row is given to two",
        ALLOT,
        "                taken.add(pk)\n",
        "",
        ("tests/waiting/test_allot.py",),
    ),
    Mutation(
        "whoever is behind takes what the first in line did not get",
        ALLOT,
        "            if len(found) == ticket.lacks or in_vain == tries:\n",
        "            if len(found) == ticket.lacks or in_vain:\n",
        THE_HANDOVER,
    ),
    Mutation(
        "a ticket for many keeps nothing",
        ALLOT,
        "        if found:\n",
        "        if len(found) == ticket.lacks:\n",
        ("tests/waiting/test_allot.py",),
    ),
    Mutation(
        "priorities are ignored",
        TICKETS,
        'self.order = f"ORDER BY {one.priority}, {one.id}"',
        'self.order = f"ORDER BY {one.id}"',
        THE_TICKETS,
    ),
    Mutation(
        "dead waiters stay in line",
        TICKETS,
        'alive = f"{one.busy_before} > {speaks.indexed_now}"',
        'alive = "1 = 1"',
        THE_TICKETS,
    ),
    Mutation(
        "who does not wait overtakes the line",
        ACQUIRE,
        "    if not connection.in_atomic_block:\n",
        "    if False:\n",
        ("tests/waiting/test_order.py",),
    ),
    Mutation(
        "collections that block each other stay",
        LINE,
        "giving_out.take_back(self._connection, model, selector)",
        "pass",
        THE_LINE,
    ),
    Mutation(
        "more is taken back than is needed",
        "waiting/giving_out.py",
        "            lacking[wanting.pk] -= 1\n",
        "",
        THE_HANDOVER,
    ),
    Mutation(
        "one row is taken back in a turn",
        "waiting/giving_out.py",
        "            ticket = left\n",
        "",
        THE_HANDOVER,
    ),
    Mutation(
        "rows that fit no earlier ticket are taken back",
        "waiting/giving_out.py",
        "if one.selector in fits), None)",
        "), None)",
        THE_HANDOVER,
    ),
    # What a waiter believes
    Mutation(
        "trust lasts as if the row had just been given",
        WAITER,
        "[Grant(pk, fence, waiter.holder, sent_at, seen.left) for pk, fence in rows]",
        "[Grant(pk, fence, waiter.holder, sent_at, waiter.request.terms.ttl) for pk, fence in rows]",
        THE_LINE,
    ),
    Mutation(
        "trust begins when the answer is there",
        WAITER,
        "_grants(connection, waiter, seen, sent_at):",
        "_grants(connection, waiter, seen, monotonic()):",
        THE_LINE,
    ),
    Mutation(
        "a ticket that was served is renewed",
        TICKETS,
        "WHERE {one.is_waiting} = {speaks.true} AND {alive} AND {one.id} IN ",
        "WHERE {alive} AND {one.id} IN ",
        THE_TICKETS,
    ),
    Mutation(
        "what may have run out is believed",
        WAITER,
        "if now >= sent_at + seen.left - margin(seen.left):",
        "if False:",
        THE_LINE,
    ),
    Mutation(
        "a waiter who is alone is not kept from a free row by a locked one",
        "waiting/giving_out.py",
        "        if len(line) == 1:\n",
        "        if False:\n",
        ("tests/waiting/test_acquire.py",),
        "mariadb",
    ),
    Mutation(
        "a signal that does not wake asyncio is missed",
        ACQUIRE,
        "with in_naps():",
        "if True:",
        ("tests/locks/test_signals.py",),
    ),
    Mutation(
        "free rows do not end a rush for tickets",
        ENTERING,
        "if is_served or len(seen.free) >= len(given) + PLENTY:",
        "if is_served:",
        ("tests/waiting/test_acquire.py",),
    ),
    Mutation(
        "several that others gave are believed",
        ENTERING,
        "    if len(rows) > 1:",
        "    if False:",
        ("tests/waiting/test_acquire.py",),
    ),
    Mutation(
        "several of which one ran out are believed",
        WAITER,
        "rows, waiter.request.terms.ttl) < len(rows):",
        "rows, waiter.request.terms.ttl) < 0:",
        THE_LINE,
    ),
    Mutation(
        "tickets are not renewed",
        LINE,
        "        self._renew(now)\n",
        "",
        THE_LINE,
    ),
    Mutation(
        "what is collected is not renewed",
        LINE,
        "            if waiter.holds:\n",
        "            if False:\n",
        THE_LINE,
    ),
    Mutation(
        "who stood still keeps a ticket that ran out",
        WAITER,
        "seen is None or (seen.is_waiting and seen.left <= 0):",
        "seen is None:",
        THE_LINE,
    ),
    # Leaving
    Mutation(
        "who leaves removes what it was given",
        TICKETS,
        'WHERE {one.fence} = %s AND {one.id} IN "',
        'WHERE {one.fence} >= %s AND {one.id} IN "',
        (*THE_TICKETS, *THE_LINE),
    ),
    Mutation(
        "who leaves keeps what it was given",
        LINE,
        "pass_on(self._connection, waiter, given[waiter.ticket.pk])",
        "pass",
        THE_LINE,
    ),
    Mutation(
        "who leaves keeps what it is given meanwhile",
        WAITER,
        "seen = now[pk]",
        "tickets.remove(connection, [pk])",
        THE_LINE,
    ),
    Mutation(
        "who gave up keeps what came late",
        WAITER,
        "            abandon(leases)",
        "            pass",
        ("tests/waiting/test_waiters.py",),
    ),
)
