"""What is tracked can be cloned anywhere: nothing in it points out of the repository."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.spawned import ROOT

# Folders of people and of machines; not /tmp, /etc, /usr ..., which every machine has.
OF_ONE_MACHINE = re.compile(r"(?<![\w./}])/(?:home|root|Users|mnt|private|work|workspace)/\w+")
TEXTS = {".py", ".md", ".toml", ".txt", ".html", ".css", ".js", ".yml", ".json", ".sh", ""}


def tracked() -> list[Path]:
    """Return the tracked files; the test is skipped in a copy without git."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git repository")
    return [Path(ROOT) / name for name in listed.stdout.split("\0") if name]


def test_links_stay_within_the_repository() -> None:
    links = [path for path in tracked() if path.is_symlink()]
    assert [link for link in links if not link.resolve().is_relative_to(Path(ROOT).resolve())] == []
    assert [link for link in links if link.readlink().is_absolute()] == []


def test_no_text_names_a_folder_of_one_machine() -> None:
    found = []
    for path in tracked():
        if path.suffix in TEXTS and path.is_file() and not path.is_symlink():
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            found += [
                f"{path}:{number}: {line.strip()}"
                for number, line in enumerate(lines, 1)
                if OF_ONE_MACHINE.search(line)
            ]
    assert found == []


@pytest.mark.parametrize("line", [f"see /{folder}/ann/x.py" for folder in ("home", "Users", "work")])
def test_such_a_folder_is_noticed(line: str) -> None:
    assert OF_ONE_MACHINE.search(line)


@pytest.mark.parametrize("before", ["status", "https://a.example", "$HOME", "a."])
def test_such_a_name_within_another_path_is_not(before: str) -> None:
    assert not OF_ONE_MACHINE.search(f"{before}/{'work'}/x")
