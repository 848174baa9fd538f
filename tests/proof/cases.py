"""Shows that a checker detects bugs: runs its proof with one guard removed at a time."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.guards import MUTATIONS, Mutation
from tests.guards.tree import ROOT, copy_without, in_tree

TRIES = 3  # what one run meets is chance
BY_NAME = {mutation.name: mutation for mutation in MUTATIONS}


class Case(NamedTuple):
    """What is removed, and the kinds of violations that count then.

    Attributes:
        mutation: None: nothing, the words make the difference.
        words: how the proof is run, in addition to its own words.
        databases: on which this can be shown; empty: on all.
    """

    name: str
    mutation: Mutation | None
    kinds: tuple[str, ...]
    words: tuple[str, ...] = ()
    databases: Collection[str] = ()


def known(name: str, *kinds: str, words: tuple[str, ...] = ()) -> Case:
    """Return the case of a guard that is in ``tests.guards``."""
    return Case(name, BY_NAME[name], kinds, words)


def own(name: str, file: str, guard: str, without: str, *kinds: str) -> Case:
    """Return the case of a guard that only this proof removes."""
    return Case(name, Mutation(name, file, guard, without), kinds)


def prove(proof: str, cases: Sequence[Case], words: Sequence[str], only: Sequence[str] = ()) -> int:
    """Try every case whose name contains all words of ``only``; print a table; return 1 when one went unnoticed.

    A case counts as unnoticed after three runs without an objection.

    Args:
        proof: the module that is run, with ``words``, ``--discard`` and ``--json``.
    """
    chosen = [case for case in cases if all(word in case.name for word in only)]
    print(f"{'without':<62}{'noticed':<10}objections", flush=True)
    unnoticed = 0
    for case in chosen:
        runs = (objections(proof, case, words) for _ in range(TRIES))
        found = next(filter(None, runs), {})
        unnoticed += not found
        said = "; ".join(f"{kind}: {number}" for kind, number in found.items())
        print(f"{case.name:<62}{'yes' if found else 'NO':<10}{said}", flush=True)
    print(f"\n{len(chosen)} taken out, {unnoticed} unnoticed")
    return 1 if unnoticed or not chosen else 0


def objections(proof: str, case: Case, words: Sequence[str]) -> dict[str, int]:
    """Run the proof without the guard; return how many violations of the kinds that count were found."""
    with tempfile.TemporaryDirectory(prefix="resourcepool-proof-") as folder:
        result = Path(folder, "result.json")
        done = without(proof, case, [*words, *case.words, "--json", str(result)])
        if not result.exists():
            raise RuntimeError(f"without {case.name} there was no result:\n{done.stdout}{done.stderr}")
        violations = json.loads(result.read_text())["violations"]
    return {kind: len(violations[kind]) for kind in case.kinds if violations[kind]}


def without(
    proof: str, case: Case, words: Sequence[str], *, is_shown: bool = False
) -> "subprocess.CompletedProcess[str]":
    """Run the proof with these words in a copy of the tree that lacks a guard."""
    with tempfile.TemporaryDirectory(prefix="resourcepool-mutation-") as folder:
        tree = ROOT
        if case.mutation is not None:
            tree = Path(folder)
            copy_without(case.mutation, tree)
        return subprocess.run(
            [sys.executable, "-m", proof, "--discard", *words],
            cwd=tree,
            env=in_tree(tree),
            capture_output=not is_shown,
            text=True,
            check=False,
        )
