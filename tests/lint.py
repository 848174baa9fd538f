"""The checks of ``make lint``: each is a command, and all of them run even if one fails."""

import subprocess
import sys
from collections.abc import Collection

from tests.outcome import Outcome

CHECKS = {
    "ruff check": ["-m", "ruff", "check", "--quiet"],
    "ruff format": ["-m", "ruff", "format", "--check", "--quiet"],
    "mypy": ["-m", "mypy", "--no-error-summary"],
    "import-linter": ["-c", "from importlinter.cli import lint_imports_command as lint; lint()"],
    "migrations": ["manage.py", "makemigrations", "--check", "--dry-run"],
    "words": ["-m", "tests.words"],
    "docs": ["-m", "sphinx", *["-q", "-n", "-W", "--keep-going", "-b", "html", "docs", "build/docs"]],
}


def lint(names: Collection[str] = CHECKS.keys()) -> Outcome:
    """Run these checks; print the output of those that fail."""
    outcome = Outcome("lint")
    for name in names:
        command = [sys.executable, *CHECKS[name]]
        check = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        print(f"  {name}: {'FAILED' if check.returncode else 'ok'}", flush=True)
        if check.returncode:
            outcome.failed += 1
            print(check.stdout + check.stderr, flush=True)
        else:
            outcome.passed += 1
    return outcome
