"""Proof that the simulation can fail: removes each guard in turn, and counts the seeds that detect it."""

import re
import subprocess
import sys

from tests.guards.leases import LEASES
from tests.guards.mutation import Mutation
from tests.guards.tree import ROOT
from tests.guards.waiting import WAITING

# The guards of leases and waiting that it need not detect: others have tests for them.
UNSEEN = {
    "a renewal that has waited reads the clock again",
    "the fences of a row that is made again",
    "a grant in a transaction takes a fence that comes again after a rollback",
    "what is caught is committed all the same",
    "a forked child may use the handle",
    "a claim on MySQL does not wait for a locked row",
    "a revocation does not raise the fence",
    "a ticket whose reply was lost is taken once",
    "a row that is held is given out",
    "a release does not see waiters",
    "a release in a transaction locks a ticket",
    "a newcomer takes a row that is due to an earlier waiter",
}
VERBS, TERMS = "leases/verbs.py", "leases/terms.py"

# Guards for lost replies, which `make mutations` leaves to the tests with real database servers.
FURTHER = (
    Mutation(
        "settling out of claim",
        VERBS,
        "return Grant(pk, fences[pk], holder, first_sent_at or 0.0)",
        "return None",
    ),
    Mutation(
        "a claim in doubt counts from its last attempt",
        VERBS,
        "return Grant(pk, fences[pk], holder, first_sent_at or 0.0)",
        "return Grant(pk, fences[pk], holder, monotonic())",
    ),
    Mutation(
        "settling out of release",
        VERBS,
        "settle = partial(settle_release, connection, model, pk, fence, trusted_until)",
        "settle = None",
    ),
    Mutation(
        "settling takes a release for done",
        VERBS,
        'return int(row == (fence + 1, "") or monotonic() < trusted_until)',
        "return 1",
    ),
    Mutation(
        "settling out of hand over", VERBS, "return fence + 1 if row == (fence + 1, to) else 0", "return 0"
    ),
    Mutation(
        "a lease is trusted although it may be released",
        "leases/lease.py",
        "state.is_in_doubt = True",
        "state.is_in_doubt = False",
    ),
    Mutation(
        "a lease is trusted during its release", "leases/lease.py", "or state.is_ending or", "or False or"
    ),
    Mutation(
        "the keeper's trust counts from the reply",
        "leases/renewal.py",
        "        grant.trust.confirm(sent_at)\n    return complete",
        "        grant.trust.confirm(monotonic())\n    return complete",
    ),
    Mutation(
        "a failed read is not retried",
        "db/retry.py",
        "retrying(connection, partial(dialect.run, connection, sql, params, dialect.all_rows))",
        "dialect.run(connection, sql, params, dialect.all_rows)",
    ),
    Mutation(
        "an expired ticket is not replaced",
        "waiting/turn.py",
        "if ticket is None or seen is None or (seen.is_waiting and seen.left <= 0):",
        "if False:",
    ),
)
TIMEOUT = 1_200


def all_guards() -> tuple[Mutation, ...]:
    """Return every guard whose removal the simulation should detect."""
    return (*(one for one in (*LEASES, *WAITING) if one.name not in UNSEEN), *FURTHER)


def prove(seeds: int) -> int:
    """Print a table; returns 1 if the removal of a guard was not detected."""
    print(f"{'taken out':<44}{'seeds that notice':>18}  one in   the first says", flush=True)
    unnoticed = sum(not noticed(mutation, seeds) for mutation in all_guards())
    print(f"\n{len(all_guards())} taken out, {unnoticed} unnoticed in {seeds} seeds each")
    return 1 if unnoticed else 0


def noticed(mutation: Mutation, seeds: int) -> int:
    """Play ``seeds`` schedules without this guard, print a line, return the number of violations."""
    command = [sys.executable, "-m", "tests.simulation", "--keep-going", f"--seeds={seeds}"]
    command.append(f"--without={mutation.name}")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    count = re.search(r"(\d+) violations", done.stdout)
    if count is None:
        print(
            f"{mutation.name:<44}{'failed':>18}       -   {done.stderr.strip().splitlines()[-1:]}", flush=True
        )
        return 0
    found = int(count[1])
    first = re.search(r"^seed \d+: (.*)", done.stdout, re.MULTILINE)
    one_in = f"{seeds / found:.0f}" if found else "-"
    print(f"{mutation.name:<44}{found:>18}  {one_in:>6}   {first[1][:70] if first else 'NOTHING'}", flush=True)
    return found
