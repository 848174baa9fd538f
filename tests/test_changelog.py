"""CHANGELOG.md is written by towncrier from the files in changes/."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import resourcepool
from tests.spawned import ROOT

CHANGES = sorted(file for file in (Path(ROOT) / "changes").iterdir() if file.name != "README.md")
KINDS = [
    kind["directory"]
    for kind in tomllib.loads((Path(ROOT) / "pyproject.toml").read_text())["tool"]["towncrier"]["type"]
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what a release reads and changes, without fragments."""
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(Path(ROOT) / name, tmp_path)
    shutil.copytree(Path(ROOT) / "resourcepool", tmp_path / "resourcepool", ignore=lambda *_: ["__pycache__"])
    (tmp_path / "changes").mkdir()
    return tmp_path


def towncrier(tree: Path, *words: str) -> str:
    command = [sys.executable, "-m", "towncrier", *words]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_newest_version_is_that_of_the_package() -> None:
    versions = re.findall(r"^## (\S+) \(.+\)$", (Path(ROOT) / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[0] == resourcepool.__version__


@pytest.mark.parametrize("fragment", CHANGES, ids=lambda file: file.name)
def test_a_fragment_has_a_known_kind_and_at_most_two_lines(fragment: Path) -> None:
    assert re.fullmatch(rf"\+[a-z0-9-]+\.({'|'.join(KINDS)})\.md", fragment.name)
    assert 0 < len(fragment.read_text().splitlines()) <= 2
