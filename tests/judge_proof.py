"""Proves that a checker detects bugs: runs its proof with one guard removed at a time."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.guards import Mutation
from tests.mutations import copy_without, in_tree

TRIES = 3  # what one run meets is chance
Cases = Mapping[Mutation, tuple[str, ...]]  # what is taken out, and the kinds of violations that count then


def prove(proof: str, cases: Cases, words: Sequence[str], only: Sequence[str] = ()) -> int:
    """Try every case whose name contains all words of ``only``; print a table; return 1 when one went unnoticed.

    A case counts as unnoticed after three runs without an objection.

    Args:
        proof: the module that is run, with ``words``, ``--discard`` and ``--json``.
    """
    chosen = {one: kinds for one, kinds in cases.items() if all(word in one.name for word in only)}
    print(f"{'without':<62}{'noticed':<10}objections", flush=True)
    unnoticed = 0
    for mutation, kinds in chosen.items():
        runs = (objections(proof, mutation, kinds, words) for _ in range(TRIES))
        found = next(filter(None, runs), {})
        unnoticed += not found
        said = "; ".join(f"{kind}: {number}" for kind, number in found.items())
        print(f"{mutation.name:<62}{'yes' if found else 'NO':<10}{said}", flush=True)
    print(f"\n{len(chosen)} taken out, {unnoticed} unnoticed")
    return 1 if unnoticed or not chosen else 0


def objections(proof: str, mutation: Mutation, kinds: Sequence[str], words: Sequence[str]) -> dict[str, int]:
    """Run the proof without the guard; return how many violations of the kinds that count were found."""
    with tempfile.TemporaryDirectory(prefix="resourcepool-proof-") as folder:
        result = Path(folder, "result.json")
        done = without(proof, mutation, [*words, "--json", str(result)])
        if not result.exists():
            raise RuntimeError(f"without {mutation.name} there was no result:\n{done.stdout}{done.stderr}")
        violations = json.loads(result.read_text())["violations"]
    return {kind: len(violations[kind]) for kind in kinds if violations[kind]}


def without(
    proof: str, mutation: Mutation, words: Sequence[str], *, is_shown: bool = False
) -> "subprocess.CompletedProcess[str]":
    """Run the proof with these words in a copy of the tree that lacks a guard."""
    with tempfile.TemporaryDirectory(prefix="resourcepool-mutation-") as folder:
        copy_without(mutation, Path(folder))
        return subprocess.run(
            [sys.executable, "-m", proof, "--discard", *words],
            cwd=folder,
            env=in_tree(Path(folder)),
            capture_output=not is_shown,
            text=True,
            check=False,
        )
