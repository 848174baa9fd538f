"""The whole test run: lint, then the tests on SQLite, MariaDB, MySQL and PostgreSQL, on private servers.

Of everything, the parts on servers run beside that on SQLite: they wait more than they compute. Temporary files are in
memory if there is room: see tests/memory.py. What failed is run once more at the end, alone: see tests/rerun.py.

python -m tests                                           everything
python -m tests --only lint                               what make lint does
python -m tests --only quick                              what make quick does
python -m tests --only mariadb -- tests/leases -k renew   one database, and what pytest is told
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.lint import lint
from tests.memory import files_in_memory
from tests.outcome import Outcome, summary
from tests.parallel_part import beside, written
from tests.processes import terminable
from tests.quick import quick
from tests.rerun import run_again
from tests.run import DATABASES, NEWEST, of_everything, run, run_alone

PARTS = ("lint", *DATABASES)
BESIDE = ("mariadb", "mysql", "postgresql")
WITHOUT_WORDS = {"lint": lint, "quick": quick}


def main(words: Sequence[str]) -> int:
    split = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(
        prog="python -m tests", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", action="append", choices=(*PARTS, *NEWEST, "quick"), help="this part alone; may be repeated"
    )
    parser.add_argument("--outcome", type=Path, help=argparse.SUPPRESS)  # where one part leaves its own
    asked, extra = parser.parse_args(words[:split]), words[split + 1 :]
    outcomes: list[Outcome] = []
    # Started in the background we inherit that Ctrl-C is ignored, and so would the programs whose Ctrl-C is tested.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Some hundred processes import the same modules: compiled once, they start in half the time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        with terminable(), files_in_memory():
            if asked.only or extra:
                one_after_the_other(asked.only or PARTS, extra, outcomes)
            else:
                everything(outcomes)
    except KeyboardInterrupt:
        print("\nInterrupted; this is how far it got:", flush=True)
        summary(outcomes)
        return 130
    if asked.outcome:
        written(outcomes[0], asked.outcome)
        return 0
    return 0 if summary(outcomes) else 1


def everything(outcomes: list[Outcome]) -> None:
    of_everything()  # before there is any part
    compile_tests()
    with contextlib.ExitStack() as stack:
        parts = [stack.enter_context(beside(name)) for name in BESIDE]
        one_after_the_other([name for name in PARTS if name not in BESIDE], [], outcomes)
        for part in parts:
            outcomes.append(part.outcome())  # noqa: PERF401 (kept when interrupted)
    run_again(outcomes, run_alone)


def compile_tests() -> None:
    """Have pytest compile all tests once: in a fresh checkout each of a dozen processes would do so by itself."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq"]
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)


def one_after_the_other(parts: Sequence[str], extra: Sequence[str], outcomes: list[Outcome]) -> None:
    """Run these parts; what came out is in ``outcomes`` also when this is interrupted."""
    for part in parts:
        outcomes.append(timed(part, extra))  # noqa: PERF401 (kept when interrupted)


def timed(part: str, extra: Sequence[str]) -> Outcome:
    print(f"\n>>> {part}", flush=True)
    start = time.monotonic()
    outcome = WITHOUT_WORDS[part]() if part in WITHOUT_WORDS else run(part, extra)
    outcome.seconds = time.monotonic() - start
    return outcome


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
