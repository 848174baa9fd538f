"""Only files with the hashes in requirements.txt are installed."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.lock import BUILDS_US, EXTRAS, LOCK, TITLES, composed, read
from tests.spawned import ROOT
from tests.test_recipes import closure

SECTIONS = dict(re.findall(r"^## (\w+)\n((?:(?!## ).*\n)*)", LOCK.read_text(), re.MULTILINE))


def test_every_package_has_one_version_and_hashes() -> None:
    lock = read(LOCK.read_text())
    assert len(lock) > 80
    for name, entry in lock.items():
        head, *hashes = entry.split(" \\\n")
        assert re.fullmatch(r"[a-z0-9-]+==[\w.]+( ; [^\\]+)?", head), name
        assert hashes, name
        assert all(re.fullmatch(r"\s+--hash=sha256:[0-9a-f]{64}", one) for one in hashes), name
    assert sorted(lock) == sorted(re.findall(r"^([\w.-]+)==", LOCK.read_text(), re.MULTILINE))


def test_the_versions_are_such_as_the_package_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(EXTRAS) == set(project["optional-dependencies"])
    wanted = [
        *project["dependencies"],
        *(one for many in project["optional-dependencies"].values() for one in many),
    ]
    lock = read(LOCK.read_text())
    for one in map(Requirement, wanted):
        version = re.split(r"==|[ ;\\]", lock[canonicalize_name(one.name)])[1]
        assert one.specifier.contains(version), f"{one}: run `make lock`"


def test_the_demo_finds_all_it_needs_in_its_section() -> None:
    needed = closure([Requirement("django-resourcepool[demo]"), Requirement(BUILDS_US[0])])
    assert needed - {"django-resourcepool"} <= set(read(SECTIONS["demo"]))


def test_what_is_installed_before_it_can_be_built_is_not_built_itself() -> None:
    assert list(SECTIONS) == list(TITLES)
    assert set(read(SECTIONS["mariadb"])) == {"mysqlclient"}
    assert "setuptools" in read(SECTIONS["tests"])


def test_a_lock_that_is_taken_apart_and_put_together_is_the_same() -> None:
    text = LOCK.read_text()
    assert composed(read(text), set(read(SECTIONS["demo"]))) == text


def test_every_way_to_install_asks_for_hashes() -> None:
    installs = re.findall(r"^.*\bpip_install .*$", (ROOT / ".ci" / "bootstrap").read_text(), re.MULTILINE)
    assert len(installs) == 2
    for line in installs:
        assert "--require-hashes" in line or "--no-deps --no-build-isolation -e ." in line


def test_what_is_not_the_file_that_was_locked_is_not_installed(tmp_path: Path) -> None:
    tree, files = tmp_path / "tree", tmp_path / "files"
    shutil.copytree(ROOT / ".ci", tree / ".ci")
    (tree / "pyproject.toml").touch()
    files.mkdir()
    good = wheel(files, "fine")
    assert "DO NOT MATCH THE HASHES" in bootstrap(tree, files, f"fine==1.0 --hash=sha256:{'0' * 64}")
    assert not installed(tree)
    bootstrap(tree, files, f"fine==1.0 --hash=sha256:{good}")
    assert installed(tree)


def wheel(folder: Path, name: str) -> str:
    """Make a package that can be installed; return its hash."""
    file, about = folder / f"{name}-1.0-py3-none-any.whl", f"{name}-1.0.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{name}.py", "")
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{about}/RECORD", "")
    return hashlib.sha256(file.read_bytes()).hexdigest()


def bootstrap(tree: Path, files: Path, line: str) -> str:
    """Have the demo's packages installed, of which this is the lock, from these files alone; return what is said."""
    (tree / "requirements.txt").write_text(f"## demo\n{line}\n")
    alone = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(files), "PIP_CONFIG_FILE": os.devnull}
    done = subprocess.run(
        [tree / ".ci" / "bootstrap", "demo"],
        env={"PATH": os.environ["PATH"], "HOME": str(tree), "PYTHON": sys.executable, **alone},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def installed(tree: Path) -> list[Path]:
    return list((tree / ".venv").glob("lib/python*/site-packages/fine.py"))
