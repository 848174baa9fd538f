"""The mutation score: mutmut changes the code in one place at a time, and a test must fail each time.

python -m tests.mutations                        all areas, half an hour at most; prints and keeps the scores
python -m tests.mutations planning --minutes 5   one area; what is left out for want of time is not in the score
python -m tests.mutations planning --survivors   and the changes that no test noticed

Ctrl-C ends it with the scores so far. The scores of the last measurement are in docs/internals/testing.md.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.guards.tree import copied, in_tree
from tests.processes import finished

NOTICED = (1, 3, 24, -24, 36, 152, 255, -9, -11)  # codes of mutmut: a test failed, or did not end
SURVIVED, UNTESTED = 0, 33
GRACE, LOOKS = 20, 5  # seconds in which mutmut ends; between two lines of progress


class Area(NamedTuple):
    """Modules that are mutated, and the tests that must notice.

    Attributes:
        at_once: how many changes are tried at once; tests with a database share it, so 1.
        sample: which changes of each function are tried, as patterns of mutmut's names, which end with a number.
        chosen: which of the tests, as pytest's ``-k``.
    """

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    at_once: int = 2
    sample: tuple[str, ...] = ()
    chosen: str = ""


AREAS = {
    "planning": Area(("resourcepool/queues/planning/*",), ("tests/queues/planning",)),
    "policy": Area(
        ("resourcepool/taskqueue/policy.py",),
        ("tests/taskqueue/test_policy.py", "tests/taskqueue/test_order.py"),
    ),
    # About a quarter of the changes. What each model repeats is tried with a few of them; and mutmut is itself the
    # caller of what it changes, which the test of the place that is reported does not expect.
    "leases": Area(
        ("resourcepool/leases/*",),
        ("tests/leases",),
        1,
        ("*[16]",),
        "(not [resourcepool or Proxy) and not test_a_handle_that_nobody_has_any_more",
    ),
    "waiting": Area(
        ("resourcepool/waiting/*",),
        ("tests/waiting", "tests/locks/test_permits.py"),  # the second: several rows at once
        1,
        ("*[16]",),
    ),
}
# mutmut finds by itself which tests reach a function; each change is tried in a fork of a process that has the tests.
CONFIG = """
[tool.mutmut]
source_paths = ["resourcepool"]
only_mutate = {modules}
also_copy = ["project", "templates", "manage.py"]
pytest_add_cli_args = ["-p", "no:cacheprovider", "-p", "no:xdist", "--reuse-db", "-k", {chosen}]
pytest_add_cli_args_test_selection = {tests}
use_setproctitle = false
process_isolation = "forkserver"
"""


class Score(NamedTuple):
    """What came of the changes of one area: {code of mutmut, None if not tried: names of the changes}."""

    codes: Mapping[int | None, Sequence[str]]

    def count(self, *codes: int | None) -> int:
        return sum(len(self.codes.get(code, ())) for code in codes)

    @property
    def tried(self) -> int:
        return self.count(*NOTICED, SURVIVED, UNTESTED)

    def __str__(self) -> str:
        noticed, tried = self.count(*NOTICED), self.tried
        share = f"{100 * noticed / tried:.1f} %" if tried else "-"
        return (
            f"{noticed:>6}{self.count(SURVIVED):>10}{self.count(UNTESTED):>10}{self.count(None):>10}{share:>9}"
        )


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutations",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("areas", nargs="*", metavar="AREA", help=", ".join(AREAS))
    parser.add_argument("--minutes", type=float, default=30.0, help="for all areas together; default: 30")
    parser.add_argument("--survivors", action="store_true", help="show the changes that no test noticed")
    asked = parser.parse_args(words)
    if unknown := set(asked.areas) - set(AREAS):
        parser.error(f"no such area: {', '.join(unknown)}")
    chosen = asked.areas or list(AREAS)
    until = time.monotonic() + asked.minutes * 60
    print(
        f"{'area':<10}{'noticed':>6}{'survived':>10}{'untested':>10}{'not tried':>10}{'score':>9}", flush=True
    )
    is_ended = False
    for number, name in enumerate(chosen):
        share = (until - time.monotonic()) / (len(chosen) - number)
        with tempfile.TemporaryDirectory(prefix="resourcepool-mutations-") as folder:
            is_ended = run(name, Path(folder), max(share, 0.0))
            if asked.survivors:
                show_survivors(score(Path(folder)), Path(folder))
        if is_ended:
            return 130
    return 0


def run(name: str, tree: Path, seconds: float) -> bool:
    """Try the changes of this area for so long, print the score, and return whether Ctrl-C was pressed."""
    area = AREAS[name]
    prepare(area, tree)
    until, is_interrupted = time.monotonic() + seconds, False
    with (tree / "said").open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "mutmut", "run", f"--max-children={area.at_once}", *area.sample],
            cwd=tree,
            env={**in_tree(tree), "DATABASE_URL": f"sqlite:///{tree}/db.sqlite3"},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        try:
            while process.poll() is None and time.monotonic() < until:
                time.sleep(LOOKS)
                show(name, score(tree), end="\r")
        except KeyboardInterrupt:
            is_interrupted = True
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
            finished(process, GRACE)
    show(name, score(tree), end="\n")
    if not score(tree).tried:
        print((tree / "said").read_text()[-2_000:], flush=True)
    return is_interrupted


def prepare(area: Area, tree: Path) -> None:
    """Copy what is needed to run the tests to ``tree``, with the configuration for this area."""
    copied(tree)
    values = {name: json.dumps(getattr(area, name)) for name in ("modules", "tests", "chosen")}
    with (tree / "pyproject.toml").open("a") as file:
        file.write(CONFIG.format(**values))


def score(tree: Path) -> Score:
    """Return what came of the changes so far."""
    codes: dict[int | None, list[str]] = defaultdict(list)
    for file in (tree / "mutants").rglob("*.meta"):
        with contextlib.suppress(ValueError):  # it is being written
            for name, code in json.loads(file.read_text())["exit_code_by_key"].items():
                codes[code].append(name)
    return Score(codes)


def show(name: str, found: Score, end: str) -> None:
    print(f"{name:<10}{found}", end=end, flush=True)


def show_survivors(found: Score, tree: Path) -> None:
    """Print each change that no test noticed."""
    for name in [*found.codes.get(SURVIVED, ()), *found.codes.get(UNTESTED, ())]:
        command = [sys.executable, "-m", "mutmut", "show", name]
        done = subprocess.run(command, cwd=tree, env=in_tree(tree), capture_output=True, text=True, check=False)
        print(done.stdout, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
