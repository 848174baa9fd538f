"""Proof that the simulation can fail: each guard taken out in turn, and how many seeds it takes to notice."""

import re
import subprocess
import sys

from tests.guards import MUTATIONS, Mutation
from tests.mutations import ROOT

# Of the guards of `make mutations`, those that an interleaving of these clients can miss.
SHARED = (
    "fence out of renew, release, hand over",
    "fence out of renew alone",
    "fence out of release alone",
    "fence out of hand over alone",
    "fences out of a batch",
    "expiry out of claim",
    "expiry out of renew",
    "in_service out of claim",
    "busy rows into claim_all",
    "all or nothing out of claim_all",
    "a shorter renewal shortens",
    "a claim does not raise the fence",
    "a release does not raise the fence",
    "the renewal out of guard",
    "fence out of guard",
    "guard without a transaction",
    "a renewal counts before its commit",
    "the margin out of the trust window",
    "trust from the reply, not from the sending",
    "save() writes lease columns",
    "quarantine without the fence",
    "acquiring in a transaction",
)
# And those of the line.
SHARED_IN_LINE = (
    "fence of the row out of the hand-over",
    "fence of the ticket out of the hand-over",
    "a row is given to a dead ticket",
    "half a hand-over stays",
    "trust lasts as if the row had just been given",
    "a ticket that was served is renewed",
    "dead waiters stay in line",
    "collections that block each other stay",
)
VERBS, TERMS, KEEPER = "leases/verbs.py", "leases/terms.py", "leases/keeper.py"

# Guards for the case that a reply is lost, which `make mutations` leaves to the tests with real servers.
FURTHER = (
    Mutation(
        "settling out of claim",
        VERBS,
        "return Grant(pk, fences[pk], holder, first_sent_at or 0.0)",
        "return None",
    ),
    Mutation(
        "an unsure claim counts from its last sending",
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
        "a lease is trusted though it may be given up",
        TERMS,
        "self.is_in_doubt = True",
        "self.is_in_doubt = False",
    ),
    Mutation("a lease is trusted while it is given up", TERMS, "or self.is_ending or", "or False or"),
    Mutation(
        "the keeper's trust counts from the reply",
        KEEPER,
        "        grant.trust.confirm(sent_at)\n    return complete",
        "        grant.trust.confirm(monotonic())\n    return complete",
    ),
    Mutation(
        "a look that fails is not repeated",
        "database/retry.py",
        "retrying(connection, partial(dialect.run, connection, sql, params, dialect.all_rows))",
        "dialect.run(connection, sql, params, dialect.all_rows)",
    ),
    Mutation(
        "a ticket that ran out is not taken anew",
        "waiting/waiter.py",
        "if waiter.ticket is None or seen is None or (seen.is_waiting and seen.left <= 0):",
        "if False:",
    ),
)
TIMEOUT = 1_200


def all_guards() -> tuple[Mutation, ...]:
    """Return every guard that the simulation should miss; raises KeyError for one that is not there any more."""
    by_name = {mutation.name: mutation for mutation in MUTATIONS}
    return (*(by_name[name] for name in (*SHARED, *SHARED_IN_LINE)), *FURTHER)


def prove(seeds: int) -> int:
    """Print a table; returns 1 if a guard could be taken out and nothing was noticed."""
    print(f"{'taken out':<44}{'seeds that notice':>18}  one in   the first says", flush=True)
    unnoticed = sum(not noticed(mutation, seeds) for mutation in all_guards())
    print(f"\n{len(all_guards())} taken out, {unnoticed} unnoticed in {seeds} seeds each")
    return 1 if unnoticed else 0


def noticed(mutation: Mutation, seeds: int) -> int:
    """Play that many seeds without this guard, print a line, return how many found a violation."""
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
