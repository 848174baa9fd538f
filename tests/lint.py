"""What ``make lint`` checks: each a command of its own, and all of them run, whatever the others say."""

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
}


def lint(names: Collection[str] = CHECKS.keys()) -> Outcome:
    """Run these checks, show what the unhappy ones say."""
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
