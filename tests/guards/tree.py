"""Copies of the source tree in which something is missing."""

import os
import shutil
from pathlib import Path

from tests.guards.mutation import Mutation

ROOT = Path(__file__).resolve().parent.parent.parent
COPIED = ("resourcepool", "project", "templates", "tests", "pyproject.toml", "manage.py")


def copied(tree: Path) -> None:
    """Copy what is needed to run the tests to ``tree``."""
    for name in COPIED:
        ignored = shutil.ignore_patterns("__pycache__", "*.sqlite3*")
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, tree / name)


def copy_without(mutation: Mutation, tree: Path) -> None:
    """Copy what is needed to run to ``tree``, and take the guard out of it; raises LookupError if it is not there."""
    copied(tree)
    file = tree / "resourcepool" / mutation.file
    text = file.read_text()
    if mutation.guard and text.count(mutation.guard) != 1:
        raise LookupError(f"found {text.count(mutation.guard)} times: {mutation.guard!r}")
    if mutation.guard:
        file.write_text(text.replace(mutation.guard, mutation.without))


def in_tree(tree: Path) -> dict[str, str]:
    """Return the environment in which Python imports the copied package, not the one that is installed."""
    return {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
