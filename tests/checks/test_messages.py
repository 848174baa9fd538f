"""Check messages are printed in 80 columns, and what is to be copied from them stays whole."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.checks import CheckMessage

from resourcepool.checks import CheckWarning, Error
from resourcepool.documentation import documented
from resourcepool.safety.problem import TEXTS
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


def columns(printed: str) -> int:
    """Return the length of the longest line; not of an address that is longer by itself."""
    return max(len(line) for line in printed.expandtabs().splitlines() if " " in line.strip())


@pytest.mark.parametrize("words", [("makemigrations", "--check"), ("migrate",)])
def test_a_missing_package_is_a_warning_that_stops_no_migration(project: Path, words: tuple[str, ...]) -> None:
    done = manage(project, *words)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stderr.split())
    assert said.count("(resourcepool.W041)") == 2
    for package, command in (("httpcore", "pip install httpcore certifi"), ("redis-py", "pip install redis")):
        assert f"]: {package} is not installed: {command}." in said


def test_what_is_printed_has_80_columns_and_its_options_can_be_copied(project: Path) -> None:
    printed = manage(project, "check", "--database", "default").stderr
    assert "(resourcepool.W014)" in printed
    assert columns(printed) <= 80
    (options,) = set(re.findall(r"Set OPTIONS: (\{.*?\})", printed, re.DOTALL))
    assert ast.literal_eval(options)["init_command"] == "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"


@pytest.mark.parametrize("code", TEXTS)
def test_each_text_fits_and_says_the_same(code: str) -> None:
    values = dict.fromkeys(re.findall(r"%\((\w+)\)", "".join(TEXTS[code])), 7)
    message, hint = (text % values for text in TEXTS[code])
    plain = CheckMessage(
        30,
        message,
        hint=f"{hint} ({documented('reference/checks', 'w000')})",
        obj="database 'default'",
        id="r.W000",
    )
    for kind in (Error, CheckWarning):
        shown = str(kind(plain.msg, hint=plain.hint, obj=plain.obj, id=plain.id))
        assert columns(shown) <= 80
        assert shown.split() == str(plain).split()
        for whole in re.findall(r'"[^"]*"|manage\.py [^(;]*[^(; ]', f"{message} {hint}"):
            assert whole in shown
