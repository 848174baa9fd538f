"""mypy and pyright accept right uses of the package and report exactly the wrong ones.

They check the project in ``project/``: ``right.py`` has no errors, and the lines of ``wrong.py`` name the expected
error codes of mypy, then of pyright.
"""

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from tests.spawned import ROOT

PROJECT = Path(__file__).parent / "project"
WRONG = PROJECT / "phones" / "wrong.py"

Errors = dict[tuple[str, int], set[str]]
"""{(file, line): error codes}."""


def expected(checker: int) -> Errors:
    """Return the errors that ``wrong.py`` names; ``checker``: 0 for mypy, 1 for pyright."""
    errors: Errors = {}
    for number, line in enumerate(WRONG.read_text().splitlines(), 1):
        if found := re.search(r"  # (.+) \| (.+)$", line):
            errors[WRONG.name, number] = set(found.group(checker + 1).split())
    return errors


def output_of(*words: str) -> str:
    """Return what a type checker prints about the project; fails if it could not check it."""
    environment = {**os.environ, "PYTHONPATH": ROOT}
    check = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert check.returncode == 1, check.stdout + check.stderr
    return check.stdout


def test_mypy_reports_exactly_the_wrong_lines() -> None:
    cache = Path(ROOT, ".mypy_cache", "typing")
    errors: Errors = defaultdict(set)
    for line in output_of("mypy", "--output=json", f"--cache-dir={cache}", "phones").splitlines():
        error = json.loads(line)
        if error["severity"] == "error":
            errors[Path(error["file"]).name, error["line"]].add(error["code"])
    assert errors == expected(0)


def test_pyright_reports_exactly_the_wrong_lines() -> None:
    errors: Errors = defaultdict(set)
    report = json.loads(output_of("basedpyright", "--outputjson", "--pythonpath", sys.executable))
    for error in report["generalDiagnostics"]:
        errors[Path(error["file"]).name, error["range"]["start"]["line"] + 1].add(error["rule"])
    assert errors == expected(1)
