"""The guards that can be taken out one at a time, and the tests that should miss them."""

from typing import NamedTuple


class Mutation(NamedTuple):
    """One guard, where it stands, what is left without it, and who should miss it."""

    name: str
    file: str
    guard: str
    without: str
    tests: tuple[str, ...] = ("tests/leases",)


CONTRACT = ("tests/leases/test_contract.py", "tests/leases/test_contract_in_time.py")
CHECKING = ("tests/resources/checking",)
VERBS, LEASE, LINE = "leases/verbs.py", "leases/lease.py", "leases/line.py"

MUTATIONS = (
    Mutation(
        "the end waits for a ticket being taken",
        "leases/shutdown.py",
        "with quiet():",
        "if True:",
        ("tests/concurrency/test_endings.py",),
    ),
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
        "a fork waits for background threads",
        "leases/background.py",
        "    before=_before_fork, after_in_parent",
        "    before=_held_back.clear, after_in_parent",
        ("tests/concurrency/test_forks.py",),
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
        "1 is taken for True among remembered orders",
        "resources/order.py",
        "*((name, type(value), value) for name, value in wishes.items())",
        "*((name, value) for name, value in wishes.items())",
        ("tests/resources/test_orders.py",),
    ),
    Mutation(
        "a holder's name is used twice",
        "resources/order.py",
        "return known.once_more()",
        "return known",
        ("tests/resources/test_orders.py",),
    ),
    Mutation(
        "fence out of renew, release, hand over",
        VERBS,
        'match = f"{table.pk} = %s AND {fence} = %s"',
        'match = f"{table.pk} = %s AND ({fence} = %s OR 1 = 1)"',
        CONTRACT,
    ),
    *(
        Mutation(
            f"fence out of {verb} alone",
            VERBS,
            'match = f"{table.pk} = %s AND {fence} = %s"',
            'match = f"{table.pk} = %s AND ({fence} = %s" + (" OR 1 = 1)" if verb == "' + verb + '" else ")")',
            CONTRACT,
        )
        for verb in ("renew", "release", "hand over")
    ),
    Mutation(
        "fences out of a batch",
        VERBS,
        "IN ({keys}) AND {fence} = CASE {table.pk}{cases} END",
        "IN ({keys}) AND {fence} >= 0 * CASE {table.pk}{cases} END",
        CONTRACT,
    ),
    Mutation(
        "expiry out of claim",
        "leases/table.py",
        'self.free = f"{self.busy_before} <= {speaks.now}{self.claimable}"',
        'self.free = f"1 = 1{self.claimable}"',
        CONTRACT,
    ),
    Mutation("expiry out of renew", VERBS, 'if verb == "renew" else ""', 'if verb == "" else ""', CONTRACT),
    Mutation(
        "in_service out of claim",
        "leases/table.py",
        'self.free = f"{self.busy_before} <= {speaks.now}{self.claimable}"',
        'self.free = f"{self.busy_before} <= {speaks.now}"',
        CONTRACT,
    ),
    Mutation(
        "busy rows into claim_all", VERBS, ".available().filter(pk__in=pks)", ".filter(pk__in=pks)", CONTRACT
    ),
    Mutation(
        "all or nothing out of claim_all", VERBS, "if len(fences) < len(pks):", "if not fences:", CONTRACT
    ),
    Mutation(
        '"nobody waits" out of claim',
        VERBS,
        "        if wanted.behind_waiters:\n            sql +=",
        "        if False:\n            sql +=",
        ("tests/leases/test_contract.py", "tests/resources/test_line.py", "tests/resources/test_poller.py"),
    ),
    Mutation(
        "a shorter renewal shortens",
        VERBS,
        "{speaks.greatest}({busy}, {speaks.later})",
        "{speaks.later}",
        CONTRACT,
    ),
    Mutation(
        "a claim does not raise the fence",
        VERBS,
        "{fence} = {speaks.next_fence.format(fence=fence)}, {holder} = %s",
        "{fence} = {fence}, {holder} = %s",
        CONTRACT,
    ),
    Mutation(
        "a release does not raise the fence",
        VERBS,
        '''"release": f"{busy} = {speaks.later}, {fence} = {fence} + 1, {holder} = ''"''',
        '''"release": f"{busy} = {speaks.later}, {fence} = {fence}, {holder} = ''"''',
        CONTRACT,
    ),
    Mutation(
        "the renewal out of guard",
        LEASE,
        "        self._renew()\n        yield self",
        "        yield self",
        ("tests/leases/test_guard.py",),
    ),
    Mutation(
        "fence out of guard",
        VERBS,
        'match = f"{table.pk} = %s AND {fence} = %s"',
        'match = f"{table.pk} = %s AND ({fence} = %s" + (" OR 1 = 1)" if verb == "renew" else ")")',
        ("tests/leases/test_guard.py",),
    ),
    Mutation(
        "guard without a transaction",
        LEASE,
        "if not self._connection.in_atomic_block:",
        "if False:",
        ("tests/leases/test_guard.py",),
    ),
    Mutation(
        "a renewal counts before its commit",
        LEASE,
        "        if self._transaction is None:\n            self.trust.confirm(sent_at)",
        "        if True:\n            self.trust.confirm(sent_at)",
        ("tests/leases/test_guard.py", "tests/leases/test_lease.py", "tests/leases/test_lease_endings.py"),
    ),
    Mutation(
        "the margin out of the trust window",
        "leases/trust.py",
        "until = self.sent_at + self._terms.ttl - margin(self._terms.ttl)",
        "until = self.sent_at + self._terms.ttl",
        (
            "tests/leases/test_trust.py",
            "tests/leases/test_lease.py",
            "tests/leases/test_lease_endings.py",
        ),
    ),
    Mutation(
        "trust from the reply, not from the sending",
        LEASE,
        "Trust(self.terms, grant.sent_at,",
        "Trust(self.terms, monotonic(),",
        (
            "tests/leases/test_lease.py",
            "tests/leases/test_lease_endings.py",
        ),
    ),
    Mutation(
        "a forked child may use the handle",
        LEASE,
        "        if self._pid != os.getpid():",
        "        if False:",
        ("tests/concurrency/test_forks.py",),
    ),
    Mutation(
        "save() writes lease columns", "leases/models.py", "return name not in LEASE_COLUMNS", "return True"
    ),
    Mutation(
        "quarantine without the fence",
        "resources/lease.py",
        ".filter(pk=self.pk, fence=self.fence)",
        ".filter(pk=self.pk)",
        ("tests/resources/test_quarantine.py",),
    ),
    Mutation(
        "a tag matches a part of another",
        "resources/selectors.py",
        'f" {word} "',
        "word",
        ("tests/resources/test_selectors.py",),
    ),
    Mutation(
        "acquiring in a transaction",
        "resources/desk.py",
        "if (blocks or manual) and not asked.allow_in_transaction:",
        "if False:",
        (
            "tests/resources/test_pool.py",
            "tests/resources/test_pool_statements.py",
        ),
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
        "a loss hides an interruption",
        "resources/desk.py",
        "        lease.abandon()",
        "        lease.release()",
        ("tests/resources/test_poller.py",),
    ),
    Mutation(
        "given up in vain, renewed for ever",
        LEASE,
        "        self.let_go()\n",
        "",
        ("tests/leases/test_lease_endings.py", "tests/leases/test_interrupted.py"),
    ),
    Mutation(
        "the end does not release what was given up in vain",
        "leases/keeper.py",
        "shutdown.release_everything(self.not_given_back())",
        "shutdown.release_everything(self.kept())",
        ("tests/concurrency/test_endings.py",),
    ),
    Mutation(
        "a clean-up can be cancelled",
        "resources/threads.py",
        "        return False\n",
        "        return super().cancel(msg)\n",
        ("tests/resources/test_threads.py",),
    ),
    Mutation(
        "what nobody wants is left lying",
        "resources/threads.py",
        "        if unwanted:\n            self.undo()",
        "",
        ("tests/resources/test_threads.py",),
    ),
    Mutation(
        "an error of the line replaces an interruption",
        "resources/desk.py",
        "        elif waiter.outcome.exception() is None:\n",
        "        else:\n",
        ("tests/resources/test_interrupted.py",),
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
    Mutation(
        "operators' changes ask the replica",
        "resources/queryset.py",
        "rows._for_write = True",
        "rows._for_write = False",
        ("tests/resources/test_replicas.py",),
    ),
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
        "deleting asks the replica",
        "resources/queryset.py",
        "self._for_write = True  # what",
        "self._for_write = False  # what",
        ("tests/resources/test_replicas.py",),
    ),
    Mutation(
        "a claim without autocommit",
        "resources/desk.py",
        'if is_open else connection.settings_dict["AUTOCOMMIT"]',
        "if is_open else True",
        (
            "tests/resources/test_pool.py",
            "tests/resources/test_pool_statements.py",
        ),
    ),
    Mutation(
        "the doctor's ticket stays",
        "safety/measuring.py",
        "        if pks:\n",
        "        if False:\n",
        ("tests/safety/test_measuring.py",),
    ),
    Mutation(
        "a password in a finding",
        "safety/diagnosis.py",
        'text.replace(str(secret), "***") if secret else text',
        "text",
        ("tests/safety/test_diagnosis.py",),
    ),
    Mutation(
        "the doctor calls everything safe",
        "management/commands/resourcepool_doctor.py",
        "raise SystemExit(1)",
        "return",
        ("tests/management/test_resourcepool_doctor.py",),
    ),
    Mutation(
        "a check takes what was parked anew",
        "resources/checking/lease.py",
        "parked.filter(pk=candidate.pk, fence=candidate.fence)",
        "parked.filter(pk=candidate.pk)",
        CHECKING,
    ),
    Mutation(
        "a check writes to a successor's row",
        "resources/checking/lease.py",
        ".filter(pk=self.pk, fence=self.fence)",
        ".filter(pk=self.pk)",
        CHECKING,
    ),
    Mutation(
        "a check goes before those who stand in line",
        "resources/checking/lease.py",
        "behind_waiters=True",
        "behind_waiters=False",
        CHECKING,
    ),
    Mutation(
        "a check that cannot tell ends a quarantine",
        "resources/checking/lease.py",
        "if not self.candidate.is_parked:",
        "if True:",
        CHECKING,
    ),
    Mutation(
        "a broken checker condemns the pool",
        "resources/checking/check.py",
        "        if not why:\n",
        "        if True:\n",
        CHECKING,
    ),
    Mutation(
        "a check is sent inside",
        "resources/checking/guard.py",
        "if not is_public(plain):",
        "if False:",
        CHECKING,
    ),
    Mutation(
        "a proxy's name is looked up again",
        "resources/checking/route.py",
        "else (address, self.port))",
        "else (self.host, self.port))",
        CHECKING,
    ),
    Mutation(
        "a proxy that trickles is waited for",
        "resources/checking/lifeline.py",
        "self._timer.start()",
        "pass",
        CHECKING,
    ),
    Mutation(
        "what was cut off looks whole",
        "resources/checking/request.py",
        "    if lifeline.is_cut:  # what",
        "    if False:  # what",
        CHECKING,
    ),
    Mutation(
        "a proxy over TLS is not verified",
        "resources/checking/request.py",
        '"https://" if conn.scheme == "https" else url',
        "url",
        CHECKING,
    ),
)
