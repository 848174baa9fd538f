"""A project that lacks the packages of its settings."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spawned import ROOT

SETTINGS = """
SECRET_KEY = "x"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "resourcepool"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
RESOURCEPOOL = {"CHECKS": {"resourcepool.Proxy": {"url": "https://example.com/"}}, "HINTS": "redis://localhost"}
"""
WITHOUT_EXTRAS = """
import sys
from django.core.management import execute_from_command_line
sys.modules |= {"httpcore": None, "certifi": None, "redis": None}
execute_from_command_line(["manage.py", *sys.argv[1:]])
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "settings_of_a_beginner.py").write_text(SETTINGS)
    return tmp_path


def manage(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a project with a plain SQLite database, where no extra is installed."""
    environment = {"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "settings_of_a_beginner"}
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, *words],
        cwd=project,
        env={**environment, "PYTHONPATH": f"{project}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("words", [("makemigrations", "--check"), ("migrate",)])
def test_a_missing_package_is_a_warning_that_stops_no_migration(project: Path, words: tuple[str, ...]) -> None:
    done = manage(project, *words)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stderr.split())
    assert said.count("(resourcepool.W041)") == 2
    for package, command in (("httpcore", "pip install httpcore certifi"), ("redis-py", "pip install redis")):
        assert f"]: {package} is not installed: {command}." in said
