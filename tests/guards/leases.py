"""The guards of a single lease: its verbs, its handle, its end."""

from tests.guards.mutation import CONTRACT, LEASE, STATEMENTS, TERMS, VERBS, Mutation

LEASES = (
    Mutation(
        "a signal leaves what was claimed to nobody",
        VERBS,
        "_undo_unheard(error, connection, model, [pk], terms, holder)",
        "pass",
        ("tests/leases/test_interrupted.py",),
    ),
    Mutation(
        "what is undone was claimed by another one",
        VERBS,
        "if who == holder",
        "if True",
        ("tests/leases/test_interrupted.py",),
    ),
    Mutation(
        "an error of the driver replaces a signal",
        "database/retry.py",
        "raise signal from None",
        "pass",
        ("tests/database/test_interrupted.py",),
    ),
    Mutation(
        "the end waits for a ticket being taken",
        "leases/shutdown.py",
        "with quiet():",
        "if True:",
        ("tests/concurrency/test_endings.py",),
    ),
    Mutation(
        "a fork waits for background threads",
        "database/background.py",
        "    before=_before_fork, after_in_parent",
        "    before=_held_back.clear, after_in_parent",
        ("tests/concurrency/test_forks.py",),
    ),
    Mutation(
        "background threads leave unused databases alone",
        "database/background.py",
        "connections[alias] = _StandIn(self, alias)",
        "connections[alias] = self[alias]",
        ("tests/database/test_background.py",),
    ),
    Mutation(
        "what one lease raises stays with it",
        "database/background.py",
        "except (Exception, SystemExit):",
        "except ZeroDivisionError:",
        ("tests/leases/test_keeper.py",),
    ),
    Mutation(
        "two transactions of one decorated function",
        "database/open_transaction.py",
        "blocks[0] = copy(blocks[0])",
        "pass",
        ("tests/database/test_open_transaction.py",),
    ),
    Mutation(
        "a lease in a parent's table is refused",
        "leases/table.py",
        "        refuse_inherited(model)\n",
        "",
        ("tests/checks/test_models.py",),
    ),
    Mutation(
        "fence out of renew, release, hand over",
        STATEMENTS,
        'match = f"{table.pk} = %s AND {fence} = %s"',
        'match = f"{table.pk} = %s AND ({fence} = %s OR 1 = 1)"',
        CONTRACT,
    ),
    *(
        Mutation(
            f"fence out of {verb} alone",
            STATEMENTS,
            'match = f"{table.pk} = %s AND {fence} = %s"',
            'match = f"{table.pk} = %s AND ({fence} = %s" + (" OR 1 = 1)" if verb == "' + verb + '" else ")")',
            CONTRACT,
        )
        for verb in ("renew", "release", "hand over", "adopt")
    ),
    Mutation(
        "fences out of a batch",
        STATEMENTS,
        "IN ({keys}) AND {fence} = {by_key}",
        "IN ({keys}) AND {fence} >= 0 * {by_key}",
        CONTRACT,
    ),
    Mutation(
        "the fences of a row that is made again",
        "dialect/expressions.py",
        "return DbMicros() if add and (value == 0 or not model_instance._state.adding) else value",
        "return value",
        ("tests/leases/test_made_again.py",),
    ),
    Mutation(
        "a batch is renewed for the ttl of its first",
        STATEMENTS,
        "differ = len(set(each)) > 1",
        "differ = False",
        (*CONTRACT, "tests/leases/test_keeper.py"),
    ),
    Mutation(
        "expiry out of claim",
        "leases/table.py",
        'self.free = f"{self.busy_before} <= {speaks.now}{self.claimable}"',
        'self.free = f"1 = 1{self.claimable}"',
        CONTRACT,
    ),
    *(
        Mutation(
            f"expiry out of {verb}",
            STATEMENTS,
            'if verb in ("renew", "adopt") else ""',
            f'if verb in ("renew", "adopt") and verb != "{verb}" else ""',
            CONTRACT,
        )
        for verb in ("renew", "adopt")
    ),
    Mutation(
        "an adoption does not raise the fence",
        STATEMENTS,
        """"adopt": f"{busy} = {later}, {fence} = {fence} + 1""",
        """"adopt": f"{busy} = {later}, {fence} = {fence}""",
        CONTRACT,
    ),
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
        "a shorter renewal shortens",
        STATEMENTS,
        "{speaks.greatest}({busy}, {later})",
        "{later}",
        CONTRACT,
    ),
    Mutation(
        "a claim does not raise the fence",
        STATEMENTS,
        "{fence} = {speaks.next_fence.format(fence=fence)}, {holder} = %s",
        "{fence} = {fence}, {holder} = %s",
        CONTRACT,
    ),
    Mutation(
        "a release does not raise the fence",
        STATEMENTS,
        '''"release": f"{busy} = {later}, {fence} = {fence} + 1, {holder} = ''"''',
        '''"release": f"{busy} = {later}, {fence} = {fence}, {holder} = ''"''',
        CONTRACT,
    ),
    Mutation(
        "the margin out of the trust window",
        TERMS,
        "until = sent_at + lasts - margin(lasts)",
        "until = sent_at + lasts",
        (
            "tests/leases/test_trust.py",
            "tests/leases/test_lease.py",
            "tests/leases/test_lease_endings.py",
        ),
    ),
    Mutation(
        "save() writes lease columns", "leases/models.py", "return name not in LEASE_COLUMNS", "return True"
    ),
    Mutation(
        "the end does not release what was given up in vain",
        "leases/keeper.py",
        "shutdown.release_everything(self.not_given_back())",
        "shutdown.release_everything(self.kept())",
        ("tests/concurrency/test_endings.py",),
    ),
    Mutation(
        "the renewal out of guard",
        LEASE,
        "            self._renew()\n        yield self",
        "        yield self",
        ("tests/leases/test_guard.py",),
    ),
    Mutation(
        "what is caught is committed all the same",
        "database/open_transaction.py",
        "transaction.set_rollback(True, using=using)",
        "pass",
        ("tests/leases/test_guard.py", "tests/queues/test_guard.py"),
    ),
    Mutation(
        "fence out of guard",
        STATEMENTS,
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
        "transaction.on_commit(partial(trust.confirm, sent_at), using=self.using)",
        "trust.confirm(sent_at)",
        ("tests/leases/test_guard.py", "tests/leases/test_lease.py", "tests/leases/test_lease_endings.py"),
    ),
    Mutation(
        "a renewal in a transaction begun by hand counts",
        LEASE,
        "elif self._connection.autocommit:",
        "else:",
        ("tests/database/test_open_transaction.py",),
    ),
    Mutation(
        "trust from the reply, not from the sending",
        "leases/kept.py",
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
        "given up in vain, renewed for ever",
        LEASE,
        "        self.let_go()  # before the statement",
        "        # before the statement",
        ("tests/leases/test_lease_endings.py", "tests/leases/test_interrupted.py"),
    ),
    Mutation(
        "a name of a prepared statement means its text",
        "dialect/prepared.py",
        "hashlib.sha256(f'{database} {self.text}'.encode()).hexdigest()[:24]",
        "'one'",
        ("tests/dialect/test_prepared.py",),
        "mariadb",
    ),
    Mutation(
        "a name of a prepared statement means the tables of one database",
        "dialect/prepared.py",
        "f'{database} {self.text}'",
        "self.text",
        ("tests/dialect/test_prepared.py",),
        "mariadb",
    ),
    Mutation(
        "a statement that the session does not know is sent as a text",
        "dialect/prepared.py",
        "if error.args[0] not in GONE:",
        "if True:",
        ("tests/dialect/test_prepared.py",),
        "mariadb",
    ),
)
