"""Without `migrate` every command prints that it has to be run."""

import re
from pathlib import Path

import pytest
from django.core.management import get_commands

from tests.management.command_runner import run
from tests.spawned import Spawner

WORDS = {
    "check": ["proxy"],
    "close": ["--all", "--reason", "x", "--yes"],
    "consume": ["oracle"],
    "drain": ["proxy", "--all", "--reason", "x", "--yes"],
    "fix": ["proxy", "17"],
    "operate": ["revoke", "proxy", "--all", "--reason", "x", "--yes"],
    "submit": ["oracle", "note"],
    "why": ["17"],
}
COMMANDS = sorted(name.removeprefix("resourcepool_") for name in get_commands() if "resourcepool_" in name)


def run_all(file: str) -> None:
    """Run each command once, and print its output."""
    from django.conf import settings

    checks = {"resourcepool.Proxy": {"url": "http://8.8.8.8/"}}
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": checks}
    for name in COMMANDS:
        ended = run(name, *WORDS.get(name, [file] if name == "import" else []))
        print(f"<{name} {ended.code}>", ended.all, f"</{name}>", flush=True)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Their output on a database without tables."""
    folder: Path = tmp_path_factory.mktemp("empty")
    (folder / "proxies").write_text("http://198.51.100.7:3128\n")
    spawner = Spawner(f"sqlite:///{folder}/db.sqlite3")
    try:
        return spawner(run_all, str(folder / "proxies"), DJANGO_SETTINGS_MODULE="project.settings").succeed(60)
    finally:
        spawner.close()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_so(name: str, empty: str) -> None:
    (found,) = re.findall(rf"<{name} (\d+)>(.*?)</{name}>", empty, re.DOTALL)
    assert found[0] == "1", found
    assert "manage.py migrate" in found[1]
