"""Runs pytest against one database, in its own process."""

import contextlib
import os
import secrets
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests import everywhere
from tests.failures import kept
from tests.outcome import Outcome
from tests.processes import finished
from tests.servers import SERVERS, ServerFailed, ServerMissing

TIMEOUT = 60 * 60  # for what hangs, as all limits here: another job may have both processors
NOTHING_COLLECTED = 5
# How many tests at once, beside those of the other databases. Each of these processes collects all tests for itself.
AT_ONCE = {
    name: (f"--numprocesses={count}", "--dist=worksteal")
    for name, count in {"sqlite": 3, **dict.fromkeys(SERVERS, 2)}.items()
}
ALONE = ("--numprocesses=2", "--dist=worksteal")  # what loads the machine by itself; half of the time it waits
NEWEST = tuple(name for name in SERVERS if name.startswith("newest-"))  # in make matrix
DATABASES = tuple(name for name in AT_ONCE if name not in NEWEST)
HAS_ALONE = "mariadb"  # what is marked ``alone`` is tested on one database


@contextlib.contextmanager
def database(name: str) -> Iterator[str]:
    """Yield the DATABASE_URL of a fresh database that is gone afterwards."""
    if name == "sqlite":
        with tempfile.TemporaryDirectory(prefix="resourcepool-sqlite-") as folder:
            yield f"sqlite:///{folder}/db.sqlite3"
        return
    # Whoever asks the session for the time, instead of for UTC, is five hours off on MariaDB and MySQL.
    zone = {} if "postgresql" in name else {"timezone": "+05:00"}
    with SERVERS[name](**zone) as server:
        yield server.url


def phases(name: str, extra: Sequence[str]) -> list[list[str]]:
    """Return what pytest is told, run by run: first what may go on at once, then what loads the machine by itself.

    On servers these are the tests marked ``everywhere``, unless the caller names paths or has an ``-m`` of its own.
    """
    names_paths = any(Path(word.split("::")[0]).exists() for word in extra)
    if "-m" in extra:
        return [[*AT_ONCE[name], *extra]]
    if name == "sqlite" or names_paths:
        chosen, which, files_alone = extra, "", extra
    else:
        chosen, which = [*everywhere.targets(), *extra], "everywhere and "
        files_alone = [*everywhere.files_alone(), *extra]
    at_once = [*AT_ONCE[name], "-m", f"{which}not alone", *chosen]
    alone = [*ALONE, "-m", f"{which}alone", *files_alone]
    return [at_once, alone] if name == HAS_ALONE else [at_once]


def of_everything() -> dict[str, str]:
    """Return the environment of a full run: it samples long lists of similar cases, see tests/case_sample.py.

    What is drawn once is inherited by the processes of its parts (each test for one of the servers has its turn), and
    by a second try of what has failed.
    """
    return {
        "TESTS_EVERY": "6",
        "TESTS_TURN": os.environ.setdefault("TESTS_TURN", str(secrets.randbelow(10_000))),
        "TESTS_SEED": os.environ.setdefault("TESTS_SEED", str(secrets.randbelow(10**9))),
    }


def run(name: str, extra: Sequence[str]) -> Outcome:
    """Run the tests on the database ``name``."""
    return run_phases(name, {} if extra else of_everything(), phases(name, extra), extra)


def run_alone(name: str, nodeids: Sequence[str]) -> Outcome:
    """Run these tests of a run of everything in one process, one after the other."""
    return run_phases(name, of_everything(), [["--numprocesses=0", *nodeids]], nodeids)


def run_phases(
    name: str, environment: Mapping[str, str], phases: Sequence[Sequence[str]], extra: Sequence[str]
) -> Outcome:
    try:
        with database(name) as url:
            told = {"DATABASE_URL": url, **environment}
            return together(name, [run_pytest(name, told, words) for words in phases], extra)
    except ServerMissing as missing:
        return Outcome(name, left_out=str(missing))
    except ServerFailed as failure:
        print(failure, flush=True)
        return Outcome(name, failed=1)


def run_pytest(name: str, environment: Mapping[str, str], words: Sequence[str]) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="resourcepool-report-") as folder:
        report, failures = Path(folder, "report.xml"), Path(folder, "failures")
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "pytest", f"--junitxml={report}"),
                *("-p", "tests.failures", f"--failures={failures}"),
                *words,
            ],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        code = finished(process, TIMEOUT)
        outcome = counted(name, report)
        outcome.failures = kept(failures)
    if code is None:
        print(f"The tests on {name} took longer than {TIMEOUT} s and were ended.", flush=True)
    if code not in (0, NOTHING_COLLECTED) and not outcome.failed:
        outcome.failed = 1
    return outcome


def together(name: str, outcomes: Sequence[Outcome], extra: Sequence[str]) -> Outcome:
    """Return the sum of these; a failure if nothing at all was collected and nobody had narrowed it down."""
    total = Outcome(name)
    for outcome in outcomes:
        total.passed += outcome.passed
        total.failed += outcome.failed
        total.skipped += outcome.skipped
        total.failures += outcome.failures
    if not extra and not (total.passed or total.failed or total.skipped):
        total.failed = 1
    return total


def counted(name: str, report: Path) -> Outcome:
    outcome = Outcome(name)
    if report.exists():
        for suite in ElementTree.parse(report).getroot().iter("testsuite"):
            number = {key: int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")}
            outcome.failed += number["failures"] + number["errors"]
            outcome.skipped += number["skipped"]
            outcome.passed += number["tests"] - number["failures"] - number["errors"] - number["skipped"]
    return outcome
