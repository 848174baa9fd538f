"""``make quick``: the most important tests on SQLite in less than a minute; ``make test`` is for a commit."""

from tests.lint import lint
from tests.outcome import Outcome
from tests.run import run, together

CHECKS = ("ruff check", "ruff format", "import-linter")
QUICK = (
    "tests/leases",
    "tests/waiting",
    "tests/resources",
    "tests/queues",
    "tests/status",
    "tests/encryption",
    "tests/db/dialect",
    "tests/db",
    "tests/jobs",
    "tests/checks/test_settings.py",
    "tests/checks/test_settings_documented.py",
    "tests/locale/test_catalogue.py",
    "tests/admin/test_roles.py",
    "tests/canary/test_pages.py::test_a_page_shows_none",
    "tests/test_guards.py",
    "tests/test_origins.py",
    "tests/test_package.py",
)
# What of it waits for real time or real processes, or generates its examples.
LEFT_OUT = (
    "tests/leases/test_any_order.py",
    "tests/queues/proof",
    "tests/queues/serving/test_asyncio.py",
    "tests/queues/serving/test_activity.py",
    "tests/queues/serving/test_server.py",
    "tests/queues/serving/test_server_presumed_dead.py",
    "tests/queues/serving/test_server_loop.py",
    "tests/queues/serving/test_server_stopping.py",
    "tests/queues/test_any_order.py",
    "tests/queues/test_outages.py",
    "tests/resources/test_any_order.py",
    "tests/resources/test_interrupted_anywhere.py",
    "tests/resources/test_no_threads.py",
    "tests/resources/test_outages.py",
    "tests/resources/test_statements.py",
)


def quick() -> Outcome:
    """Run the checks that take no time, then the tests."""
    left_out = (f"--ignore={path}" for path in LEFT_OUT)
    tests = run("sqlite", ["-m", "not alone", *left_out, *QUICK])
    return together("quick", [lint(CHECKS), tests], QUICK)
