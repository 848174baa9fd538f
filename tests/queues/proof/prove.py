"""Proof that the judge objects: the package with one guard removed at a time."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.guards import Mutation
from tests.mutations import copy_without, in_tree

SECONDS = 25
OVERLAP, FENCE, LATE = "two servers at once", "fence not higher than before", "late write behind the guard"
CUT_OFF, UNWORKED, NEEDLESS = (
    "work in hand lost its queue",
    "queue unworked for too long",
    "more moves than needed",
)

MEMBERSHIP, MOVING, PLANNING = (
    "queues/serving/membership.py",
    "queues/reassignment.py",
    "queues/planning/changes.py",
)
CASES: dict[Mutation, tuple[str, ...]] = {
    Mutation(
        "a hand-over waits for the work in hand",
        MEMBERSHIP,
        "(queue.is_asked_for or queue.is_in_doubt) and not queue.is_in_hand",
        "(queue.is_asked_for or queue.is_in_doubt)",
    ): (CUT_OFF, OVERLAP),
    Mutation(
        "nothing is taken over before its owner would stop",
        PLANNING,
        " and queue.requested_ago >= limit",
        "",
    ): (CUT_OFF, OVERLAP),
    Mutation(
        "a server is presumed dead after its ttl",
        "queues/queries.py",
        "server.micros_left > 0",
        "server.micros_left > 2_500_000",
    ): (CUT_OFF, OVERLAP, NEEDLESS),
    # The lease of the server and the last check are both affected, as each of them alone would be enough.
    Mutation("the end of trust", "leases/terms.py", "return min(ttl / 10, 2.0)", "return -1_000 * ttl"): (
        OVERLAP,
    ),
    Mutation("a change of owner raises the fence", MOVING, 'fence=F("fence") + 1, ', ""): (FENCE, OVERLAP),
    Mutation(
        "dead servers are looked for",
        "queues/serving/snapshot.py",
        "dead_in = math.inf if row.next_dead is None else row.next_dead / 1_000_000",
        "dead_in = math.inf",
    ): (UNWORKED,),
}
KNOWN = {mutation.name: mutation for mutation in CASES}


def prove(database: str) -> int:
    """Try every case; print a table; return 1 if the judge missed a case."""
    print(f"{'without':<52}{'noticed':<10}objections", flush=True)
    unnoticed = 0
    for mutation, kinds in CASES.items():
        found = objections(mutation, kinds, database)
        unnoticed += not found
        said = "; ".join(f"{kind}: {number}" for kind, number in found.items())
        print(f"{mutation.name:<52}{'yes' if found else 'NO':<10}{said}", flush=True)
    print(f"\n{len(CASES)} taken out, {unnoticed} unnoticed")
    return 1 if unnoticed else 0


def objections(
    mutation: Mutation, kinds: Sequence[str], database: str, seconds: float = SECONDS
) -> dict[str, int]:
    """Run without the guard; return how many violations of the kinds that count were found."""
    with tempfile.TemporaryDirectory(prefix="resourcepool-proof-") as folder:
        result = Path(folder, "result.json")
        words = ["--database", database, "--minutes", str(seconds / 60), "--json", str(result)]
        done = without(mutation, words)
        if not result.exists():
            raise RuntimeError(f"without {mutation.name} there was no result:\n{done.stdout}{done.stderr}")
        violations = json.loads(result.read_text())["violations"]
    return {kind: len(violations[kind]) for kind in kinds if violations[kind]}


def without(
    mutation: Mutation, words: Sequence[str], *, is_shown: bool = False
) -> "subprocess.CompletedProcess[str]":
    """Run the proof with these words in a copy of the tree that lacks a guard."""
    with tempfile.TemporaryDirectory(prefix="resourcepool-mutation-") as folder:
        copy_without(mutation, Path(folder))
        return subprocess.run(
            [sys.executable, "-m", "tests.queues.proof", "--discard", *words],
            cwd=folder,
            env=in_tree(Path(folder)),
            capture_output=not is_shown,
            text=True,
            check=False,
        )
