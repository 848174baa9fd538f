"""The guards of the read-write lock: who reads and who writes beside whom, and in which order."""

from tests.guards.mutation import SCAN, Mutation

LOCK, PERMITS, READ_WRITE = (f"locks/rwlock/{name}.py" for name in ("lock", "permits", "read_write"))
TESTS = tuple(f"tests/locks/test_rwlock{end}.py" for end in ("", "_changing", "_order", "_revoked"))
REVOKED = ("tests/locks/test_rwlock_revoked.py",)
CANCELLED = ("tests/locks/test_cancelled_anywhere.py",)
ORDER = "WRITER_PRIORITY, UPGRADE_PRIORITY = -1, -2"

READ_WRITE_LOCKS = (
    Mutation(
        "a writer: what it was given is all there is",
        PERMITS,
        "            self._confirm(using, request)\n",
        "            pass\n",
        TESTS,
    ),
    Mutation(
        "a writer: what it counted is all there is",
        PERMITS,
        "if self._held or any(grant.fence == others[grant.pk].fence + 1 for grant in grants):",
        "if True:",
        TESTS,
    ),
    Mutation(
        "a writer: it waits for rows that are not there any more",
        SCAN,
        "            for waiter in alike if model.line_per_name else ():",
        "            for waiter in ():",
        TESTS,
    ),
    Mutation(
        "permits are added beside others",
        PERMITS,
        "            transaction.set_rollback(not is_alone, using=connection.alias)\n",
        "",
        TESTS,
    ),
    Mutation(
        "a reader waits for itself to write",
        READ_WRITE,
        "if hold is not None and self.writes and not hold.is_writing:",
        "if False:",
        TESTS,
    ),
    Mutation("writers come after readers", PERMITS, ORDER, "WRITER_PRIORITY, UPGRADE_PRIORITY = 0, -2", TESTS),
    Mutation(
        "who upgrades waits for writers", PERMITS, ORDER, "WRITER_PRIORITY, UPGRADE_PRIORITY = -1, 0", TESTS
    ),
    Mutation(
        "two readers upgrade",
        LOCK,
        "                async with upgrade_intent(mode, self.name, self.using, terms):",
        "                if True:",
        TESTS,
    ),
    Mutation(
        "the row of the intent is a permit",
        "locks/models.py",
        'return "" if number == cls.INTENT else name',
        "return name",
        ("tests/locks/test_rwlock_changing.py",),
        "mariadb",
    ),
    Mutation(
        "who lost what it read upgrades",
        LOCK,
        "            await mode.call(hold.leases[0].renew)\n",
        "            hold.ensure_held()\n",
        TESTS,
    ),
    Mutation(
        "who lost what it keeps reads on",
        READ_WRITE,
        "        self.leases[0].renew()\n",
        "",
        REVOKED,
    ),
    Mutation(
        "who stops waiting to write does not know that it has lost",
        PERMITS,
        "    try:\n        hold.ensure_held()\n    except LeaseLost:\n        return True\n    return False\n",
        "    return not hold.is_held\n",
        TESTS,
    ),
    Mutation(
        "a cancelled upgrade keeps what it was granted",
        LOCK,
        "                await mode.call(release_quietly, leases)\n",
        "                pass\n",
        CANCELLED,
    ),
    Mutation(
        "a writer that has lost a part reads on",
        READ_WRITE,
        "            self._broken = self._broken or error\n",
        "            del error\n",
        TESTS,
    ),
    Mutation(
        "a writer's fence is that of any row",
        READ_WRITE,
        "return max(lease.fence for lease in self.leases)",
        "return min(lease.fence for lease in self.leases)",
        TESTS,
    ),
    Mutation(
        "a reader releases as a writer",
        READ_WRITE,
        "not (hold.writes if self.writes else hold.count - hold.writes)",
        "not hold.count",
        TESTS,
    ),
    Mutation(
        "one that collects is passed by who is behind it",
        "waiting/release.py",
        "if ticket.lacks > 1 and (rereads := rereads - 1) >= 0:",
        "if False:",
        ("tests/waiting/test_handover.py",),
    ),
    Mutation(
        "one that collects is passed by a release of several rows",
        "waiting/release.py",
        "            line = read_line()\n",
        "",
        ("tests/locks/test_permits.py",),
    ),
)
