"""Proves that the tests detect missing guards: removes one guard at a time and expects failures.

python -m tests.guards            each one, on SQLite or its own server; prints a table; exit 1 if one goes unnoticed
python -m tests.guards claim      those whose name contains the word
"""

import contextlib
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.guards import MUTATIONS, Mutation
from tests.guards.tree import copy_without, in_tree
from tests.servers import SERVERS, ServerFailed, ServerMissing

TIMEOUT = 300  # seconds for the tests of one guard; for all of them together, without one:
TIMEOUT_OF_ALL = 1_500
AT_ONCE = 2
one_is_made = threading.Lock()


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
        try:
            with database(mutation, Path(folder)) as url:
                return judged(mutation, Path(folder), url)
        except (ServerMissing, ServerFailed) as problem:
            return Verdict(mutation, not mutation.guard, str(problem))  # not what is expected, either way


@contextlib.contextmanager
def database(mutation: Mutation, tree: Path) -> Iterator[str]:
    """Yield the URL of the database for its tests. Raises ServerMissing, ServerFailed."""
    if not mutation.database:
        yield f"sqlite:///{tree}/db.sqlite3"
        return
    with contextlib.ExitStack() as stack:
        with one_is_made:  # two that are made at the same time have been seen to fail
            server = stack.enter_context(SERVERS[mutation.database]())
        yield server.url


def judged(mutation: Mutation, tree: Path, url: str) -> Verdict:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", "-x", *mutation.tests]
    environment = {**in_tree(tree), "DATABASE_URL": url}
    timeout = TIMEOUT if mutation.guard else TIMEOUT_OF_ALL
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=timeout, check=False
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


def main(words: list[str]) -> int:
    chosen = [mutation for mutation in MUTATIONS if all(word in mutation.name for word in words)]
    wide = max((len(mutation.name) for mutation in chosen), default=0) + 2
    print(f"{'taken out':<{wide}}{'':<8}first test that failed", flush=True)
    unexpected = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for verdict in pool.map(tried, [*unchanged(chosen), *chosen]):
            word = "red" if verdict.is_noticed else "green"
            if verdict.is_noticed != bool(verdict.mutation.guard):
                word = word.upper() + "!"
                unexpected.append(f"{word} {verdict.mutation.name}")
            print(f"{verdict.mutation.name:<{wide}}{word:<8}{verdict.failed}", flush=True)
    print(f"\n{len(chosen)} taken out; {len(unexpected)} not as expected", *unexpected, sep="\n  ")
    return 1 if unexpected or not chosen else 0


def unchanged(chosen: Sequence[Mutation]) -> Iterator[Mutation]:
    """Yield the tree as it is for each database: on it the same tests must pass, otherwise red would prove nothing."""
    for name in sorted({mutation.database for mutation in chosen}):
        tests = {test for mutation in chosen for test in mutation.tests if mutation.database == name}
        yield Mutation(f"nothing {name}".strip(), "leases/verbs.py", "", "", tuple(sorted(tests)), name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
