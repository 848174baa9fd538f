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
# What asks no database, or nothing that another one would answer differently: on SQLite alone. The pages and commands
# show what stats/ and queues/ read, which is tested everywhere; tests/canary opens each of them everywhere.
ONCE = (
    "tests/admin",
    "tests/dashboard",
    "tests/demo",
    "tests/hints",
    "tests/locale",
    "tests/management",
    "tests/phrases",
    "tests/queues/planning/test_changes.py",
    "tests/queues/planning/test_round_robin.py",
    "tests/queues/planning/test_sticky.py",
    "tests/queues/planning/test_strategies.py",
    "tests/queues/proof/test_judge.py",
    "tests/validity",
    "tests/proxies",
    "tests/tasks",
    "tests/test_guards.py",
    "tests/test_lock.py",
    "tests/test_new_kind.py",
    "tests/test_recipes.py",
    "tests/test_wheel.py",
)
# But for these: what they ask is their own.
EVERYWHERE = (
    "tests/admin/test_lists.py",
    "tests/admin/test_locked_rows.py",
    "tests/admin/test_records.py",
    "tests/admin/queues/test_lists.py",
    "tests/management/test_locked_rows.py",
    "tests/management/test_resourcepool_close.py",
    "tests/management/test_resourcepool_doctor.py",
    "tests/management/test_unmigrated.py",
    "tests/validity/test_check.py",
    "tests/validity/test_together.py",
    "tests/proxies/test_importing.py",
)
DATABASES = ("sqlite", "mariadb", "postgresql")


@contextlib.contextmanager
def database(name: str) -> Iterator[str]:
    """Yield the DATABASE_URL of a fresh database that is gone afterwards."""
    if name == "sqlite":
        with tempfile.TemporaryDirectory(prefix="resourcepool-sqlite-") as folder:
            yield f"sqlite:///{folder}/db.sqlite3"
        return
    # Whoever asks the session for the time, instead of for UTC, is five hours off on this MariaDB.
    with PostgreSQL() if name == "postgresql" else MariaDB(timezone="+05:00") as server:
        yield server.url


def targets(name: str, extra: Sequence[str]) -> list[str]:
    """Return what pytest is told: the caller's arguments, and the folders when those name none."""
    if any(Path(word.split("::")[0]).exists() for word in extra):
        return list(extra)
    return [*(f"--ignore={path}" for path in left_out() if name != "sqlite"), *extra]


def left_out() -> Iterator[Path]:
    """Yield what runs on SQLite alone: the paths of ONCE, without what is in EVERYWHERE."""
    kept = {Path(path) for path in EVERYWHERE}
    for path in map(Path, ONCE):
        if any(path in one.parents for one in kept):
            yield from sorted(set(path.rglob("test_*.py")) - kept)
        else:
            yield path


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
