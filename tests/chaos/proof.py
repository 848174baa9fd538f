"""Proves that the checker detects bugs: a server that loses commits, and the package with one guard removed."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.chaos.run import FORGETFUL
from tests.guards import MUTATIONS, Mutation
from tests.mutations import copy_without, in_tree
from tests.spawned import ROOT

SECONDS = 20
OVERLAP, FENCE, FORGOTTEN = (
    "two holders at once",
    "fence not higher than before",
    "grant forgotten by the server",
)
LATE, UNEXPECTED = "late write behind the guard", "undocumented error seen by a caller"

# More of what a guard is there for than in a usual run, which lasts longer.
RATES = {"stops": 4, "held_up": 6, "kills": 0.5, "server_killed_every": 0}
CRASHES = {"server_killed_every": 6, "stops": 0, "held_up": 0}

TRUST = Mutation(
    "the trust window",
    "leases/terms.py",
    "until = sent_at + valid_for - margin(valid_for)",
    "until = sent_at + 1_000 * valid_for",
)
KNOWN = {mutation.name: mutation for mutation in (*MUTATIONS, TRUST)}


class Case(NamedTuple):
    """What is taken out, and which objections count."""

    name: str
    kinds: tuple[str, ...]
    rates: dict[str, float] = RATES


DURABLE = Case("durable commits", (FORGOTTEN,), CRASHES)
CASES = (
    DURABLE,
    Case("expiry out of claim", (OVERLAP,)),
    Case("fence out of renew, release, hand over", (OVERLAP,)),
    Case("fence out of release alone", (OVERLAP,)),
    Case("the trust window", (OVERLAP,)),
    Case("the renewal out of guard", (LATE,)),
    Case("fence out of guard", (LATE,)),
    Case("a claim does not raise the fence", (FENCE, "evidence that makes no sense")),
    Case("all or nothing out of claim_all", (UNEXPECTED,)),
)


def prove(database: str, words: Sequence[str] = ()) -> int:
    """Try every case whose name contains the words; print a table; return 1 when one went unnoticed."""
    cases = [case for case in CASES if all(word in case.name for word in words)]
    if database not in FORGETFUL and DURABLE in cases:
        cases.remove(DURABLE)
    print(f"{'without':<42}{'noticed':<10}objections", flush=True)
    unnoticed = 0
    for case in cases:
        found = objections(case, database)
        unnoticed += not found
        said = "; ".join(f"{kind}: {number}" for kind, number in found.items())
        print(f"{case.name:<42}{'yes' if found else 'NO':<10}{said}", flush=True)
    print(f"\n{len(cases)} taken out, {unnoticed} unnoticed")
    return 1 if unnoticed or not cases else 0


def objections(case: Case, database: str, seconds: float = SECONDS) -> dict[str, int]:
    """Run ``case`` shortly; return how many violations of the kinds that count were found."""
    with tempfile.TemporaryDirectory(prefix="resourcepool-proof-") as folder:
        result = Path(folder, "result.json")
        words = ["--database", database, "--minutes", str(seconds / 60), "--json", str(result)]
        words += [word for name, rate in case.rates.items() for word in ("--rate", f"{name}={rate}")]
        forgets = case is DURABLE
        done = _run([*words, "--forgetful"], ROOT) if forgets else without(KNOWN[case.name], words)
        if not result.exists():
            raise RuntimeError(f"without {case.name} there was no result:\n{done.stdout}{done.stderr}")
        violations = json.loads(result.read_text())["violations"]
    return {kind: len(violations[kind]) for kind in case.kinds if violations[kind]}


def without(mutation: Mutation, words: Sequence[str], **how: bool) -> "subprocess.CompletedProcess[str]":
    """Run chaos with these words in a copy of the tree that lacks a guard."""
    with tempfile.TemporaryDirectory(prefix="resourcepool-mutation-") as folder:
        copy_without(mutation, Path(folder))
        return _run(words, Path(folder), **how)


def _run(words: Sequence[str], tree: Path, *, is_shown: bool = False) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "tests.chaos", "--discard", *words],
        cwd=tree,
        env=in_tree(tree),
        capture_output=not is_shown,
        text=True,
        check=False,
    )
