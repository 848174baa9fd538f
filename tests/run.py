"""Runs pytest against one database, in a process of its own."""

import contextlib
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.outcome import Outcome
from tests.processes import finished
from tests.servers import MariaDB, PostgreSQL, ServerFailed, ServerMissing

TIMEOUT = 20 * 60
AT_ONCE = ("--numprocesses=2", "--dist=worksteal", "-m", "not alone")
ALONE = ("--numprocesses=0", "-m", "alone")  # what loads the machine by itself would make others late
NOTHING_COLLECTED = 5
# What asks no database, or nothing that another one would answer differently: on SQLite alone.
ONCE = (
    "tests/demo",
    "tests/hints",
    "tests/locale",
    "tests/phrases",
    "tests/queues/test_planning.py",
    "tests/queues/test_round_robin.py",
    "tests/queues/test_sticky.py",
    "tests/queues/test_strategies.py",
    "tests/queues/proof/test_judge.py",
    "tests/resources/checking/test_guard.py",
    "tests/resources/checking/test_proxies_inside.py",
    "tests/resources/checking/test_proxies_tls.py",
    "tests/resources/checking/test_rules.py",
    "tests/test_guards.py",
    "tests/test_lock.py",
    "tests/test_recipes.py",
    "tests/test_wheel.py",
)
DATABASES = ("sqlite", "mariadb", "postgresql", "mariadb+05:00")


@contextlib.contextmanager
def database(name: str) -> Iterator[str]:
    """Yield the DATABASE_URL of a fresh database that is gone afterwards."""
    if name == "sqlite":
        with tempfile.TemporaryDirectory(prefix="resourcepool-sqlite-") as folder:
            yield f"sqlite:///{folder}/db.sqlite3"
        return
    server = (
        PostgreSQL() if name == "postgresql" else MariaDB(timezone=name.removeprefix("mariadb") or "+00:00")
    )
    with server:
        yield server.url


def targets(name: str, extra: Sequence[str]) -> list[str]:
    """Return what pytest is told: the caller's arguments, and the folders when those name none."""
    if any(Path(word.split("::")[0]).exists() for word in extra):
        return list(extra)
    left_out = [f"--ignore={path}" for path in ONCE] if name != "sqlite" else []
    if name == "postgresql":
        # Their SQL is the ORM's and that of stats/ and queues/, which is tested here; as pages they are on MariaDB.
        left_out += ["--ignore=tests/admin", "--ignore=tests/dashboard"]
    if name != "mariadb+05:00":
        return [*left_out, *extra]
    # Whoever asks the session for the time, instead of for UTC, is five hours off; that shows in these.
    left_out += ["--ignore=tests/resources/checking", "--ignore=tests/resources/importing"]
    return ["tests/leases", "tests/resources", "tests/queues/test_moving.py", *left_out, *extra]


def run(name: str, extra: Sequence[str]) -> Outcome:
    """Run the tests on the database ``name``."""
    try:
        with database(name) as url:
            phases = (
                (AT_ONCE, ALONE) if "-m" not in extra else (AT_ONCE[:2],)
            )  # whoever marks them knows better
            return together(name, [run_pytest(name, url, [*how, *extra]) for how in phases], extra)
    except ServerMissing as missing:
        return Outcome(name, left_out=str(missing))
    except ServerFailed as failure:
        print(failure, flush=True)
        return Outcome(name, failed=1)


def run_pytest(name: str, url: str, words: Sequence[str]) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="resourcepool-report-") as folder:
        report = Path(folder, "report.xml")
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", f"--junitxml={report}", *targets(name, words)],
            env={**os.environ, "DATABASE_URL": url},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        code = finished(process, TIMEOUT)
        outcome = counted(name, report)
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
    if not extra and not (total.passed or total.failed or total.skipped):
        total.failed = 1
    return total


def counted(name: str, report: Path) -> Outcome:
    outcome = Outcome(name)
    if report.exists():
        for suite in ElementTree.parse(report).iter("testsuite"):
            number = {key: int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")}
            outcome.failed += number["failures"] + number["errors"]
            outcome.skipped += number["skipped"]
            outcome.passed += number["tests"] - number["failures"] - number["errors"] - number["skipped"]
    return outcome
