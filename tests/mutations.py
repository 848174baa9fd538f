"""Proof that the tests guard what they are said to guard: takes out one guard at a time and sees them turn red.

python -m tests.mutations            every one, on SQLite; prints a table; exit 1 if one goes unnoticed
python -m tests.mutations claim      those whose name contains the word
"""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("resourcepool", "project", "templates", "tests", "pyproject.toml", "manage.py")
TIMEOUT = 300
AT_ONCE = 2


class Mutation(NamedTuple):
    """One guard, where it stands, what is left without it, and who should miss it."""

    name: str
    file: str
    guard: str
    without: str
    tests: tuple[str, ...] = ("tests/leases",)


CONTRACT = ("tests/leases/test_contract.py",)
VERBS, LEASE, LINE = "leases/verbs.py", "leases/lease.py", "leases/line.py"

MUTATIONS = (
    Mutation(
        "who sleeps in line is skipped by all",
        LINE,
        "tickets.skip(self._connection, passed, ticket_ttl())",
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
        'alive += f" AND {skipped_until} <= {speaks.indexed_now}"',
        'alive += ""',
        ("tests/concurrency/test_line.py",),
    ),
    Mutation(
        "ours are served though skipped",
        LINE,
        "if waiter.number not in seen\n",
        "if False\n",
        ("tests/resources/test_line.py",),
    ),
    Mutation(
        "a fork waits for background threads",
        "leases/background.py",
        "    before=_before_fork, after_in_parent",
        "    before=_held_back.clear, after_in_parent",
        ("tests/concurrency/test_forks.py",),
    ),
    Mutation(
        "what a ticket for several collects is left lying early",
        "leases/lying.py",
        "since = max((self._since[pk][1]",
        "since = min((self._since[pk][1]",
        ("tests/leases/test_lying.py",),
    ),
    Mutation(
        "further ones in line wait longer for what lies there",
        "leases/lying.py",
        "return PATIENCE + STEP * max(rank, 0)",
        "return PATIENCE",
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
        "    if wanted.behind_waiters:\n        sql +=",
        "    if False:\n        sql +=",
        ("tests/leases/test_contract.py", "tests/resources/test_line.py"),
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
        "        if self._transaction is None:\n            self.confirm(sent_at)",
        "        if True:\n            self.confirm(sent_at)",
        ("tests/leases/test_guard.py", "tests/leases/test_lease.py"),
    ),
    Mutation(
        "the margin out of the trust window",
        LEASE,
        "until = self._sent_at + self.terms.ttl - margin(self.terms.ttl)",
        "until = self._sent_at + self.terms.ttl",
        ("tests/leases/test_lease.py",),
    ),
    Mutation(
        "trust from the reply, not from the sending",
        LEASE,
        "self._granted_at = self._sent_at = grant.sent_at",
        "self._granted_at = self._sent_at = monotonic()",
        ("tests/leases/test_lease.py",),
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
        ("tests/resources/test_pool.py",),
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
        "                    lease.release()",
        "                    pass",
        ("tests/resources/test_line.py",),
    ),
    Mutation(
        "dead waiters stay in line",
        LINE,
        ".held().filter(pool=label)",
        ".filter(pool=label)",
        ("tests/resources/test_line.py",),
    ),
    Mutation(
        "priorities are ignored",
        LINE,
        '.order_by("priority", "pk")',
        '.order_by("pk")',
        ("tests/resources/test_line.py",),
    ),
    Mutation(
        "deleting asks the replica",
        "resources/models.py",
        "self._for_write = True",
        "self._for_write = False",
        ("tests/resources/test_replicas.py",),
    ),
    Mutation(
        "a claim without autocommit",
        "resources/desk.py",
        'if is_open else connection.settings_dict["AUTOCOMMIT"]',
        "if is_open else True",
        ("tests/resources/test_pool.py",),
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
)


class Verdict(NamedTuple):
    """What the tests said about one mutation."""

    mutation: Mutation
    is_noticed: bool
    failed: str


def tried(mutation: Mutation) -> Verdict:
    """Copy the tree, take the guard out, run the tests."""
    with tempfile.TemporaryDirectory(prefix="resourcepool-mutation-") as folder:
        try:
            copy_without(mutation, Path(folder))
        except LookupError as error:
            return Verdict(mutation, False, str(error))
        return judged(mutation, Path(folder))


def copy_without(mutation: Mutation, tree: Path) -> None:
    """Copy what is needed to run to ``tree``, and take the guard out of it; raises LookupError if it is not there."""
    for name in COPIED:
        ignored = shutil.ignore_patterns("__pycache__", "*.sqlite3*")
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, tree / name)
    file = tree / "resourcepool" / mutation.file
    text = file.read_text()
    if mutation.guard and text.count(mutation.guard) != 1:
        raise LookupError(f"found {text.count(mutation.guard)} times: {mutation.guard!r}")
    if mutation.guard:
        file.write_text(text.replace(mutation.guard, mutation.without))


def judged(mutation: Mutation, tree: Path) -> Verdict:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", "-x", *mutation.tests]
    environment = {**in_tree(tree), "DATABASE_URL": f"sqlite:///{tree}/db.sqlite3"}
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return Verdict(mutation, True, "(the tests did not end)")
    failed = [
        line.split(" - ")[0].split("::", 1)[-1] for line in done.stdout.splitlines() if line[:6] == "FAILED"
    ]
    if done.returncode == 1 and failed:
        return Verdict(mutation, True, failed[0])
    last = (done.stdout + done.stderr).strip().splitlines()[-1:] or ["no output"]
    return Verdict(mutation, False, f"exit {done.returncode}: {last[0]}")


def in_tree(tree: Path) -> dict[str, str]:
    """Return the environment in which Python imports the copied package, not the one that is installed."""
    return {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}


def main(words: list[str]) -> int:
    chosen = [mutation for mutation in MUTATIONS if all(word in mutation.name for word in words)]
    print(f"{'taken out':<44}{'':<10}first test that failed", flush=True)
    unnoticed = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for verdict in pool.map(tried, [unchanged(), *chosen]):
            expected = verdict.is_noticed == bool(verdict.mutation.guard)
            unnoticed += not expected
            word = "red" if verdict.is_noticed else "green"
            print(
                f"{verdict.mutation.name:<44}{word if expected else word.upper() + '!':<10}{verdict.failed}",
                flush=True,
            )
    print(f"\n{len(chosen)} taken out, {unnoticed} unexpected results")
    return 1 if unnoticed or not chosen else 0


def unchanged() -> Mutation:
    """The tree as it is, on which the same tests must pass: otherwise red would prove nothing."""
    every = tuple(sorted({test for mutation in MUTATIONS for test in mutation.tests}))
    return Mutation("nothing", VERBS, "", "", every)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
