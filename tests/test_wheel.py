"""The wheel contains all files that the package needs at run time, and no others."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.spawned import ROOT

PACKAGE = Path(ROOT) / "resourcepool"
MADE = {"__pycache__", ".DS_Store"}


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of the files in the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_it_has_every_file_of_the_package(names: set[str]) -> None:
    there = {
        str(path.relative_to(ROOT))
        for path in PACKAGE.rglob("*")
        if path.is_file() and not MADE.intersection(path.parts)
    }
    assert not there - names


@pytest.mark.parametrize(
    "name",
    [
        "locale/zh_Hans/LC_MESSAGES/django.mo",
        "management/commands/resourcepool_status.py",
        "migrations/0001_initial.py",
        "py.typed",
        "static/resourcepool/dashboard.css",
        "static/resourcepool/dashboard.js",
        "templates/resourcepool/dashboard/page.html",
    ],
)
def test_it_has_what_is_no_code_of_its_own(names: set[str], name: str) -> None:
    assert f"resourcepool/{name}" in names


def test_it_has_nothing_besides(names: set[str]) -> None:
    others = {name.split("/")[0] for name in names} - {"resourcepool"}
    assert all(name.endswith(".dist-info") for name in others)
    assert any(name.endswith("/licenses/LICENSE") for name in names)
