"""Untrusted text never controls the terminal: file names, quoted input, a lone CR."""

import io
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from resourcepool.models import Proxy
from tests.app.rows import new
from tests.management.command_runner import manage, run
from tests.management.test_base import Terminal
from tests.spawned import Spawner

pytestmark = pytest.mark.usefixtures("history")

HOSTILE = "a\x1b]0;owned\x07\rb\u202ec\n0 bad.csv"
CONTROLS = re.compile("[^\n\x20-\x7e\u00a0-\u00ac\u00ae-\u1fff\u2070-\ud7ff]")


def said(text: str) -> str:
    """Return ``text`` after a check that names added neither control characters nor lines to it."""
    assert not CONTROLS.search(text), ascii(text)
    assert "\n0 bad" not in text
    return text


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    file = tmp_path / HOSTILE
    file.write_text("host,port\nfine.example,80\nb.example,x\n")
    return file


@pytest.mark.parametrize(
    "words",
    [
        ["import", "{file}"],
        ["import", "{file}/nothing"],
        ["import", "{file}", "--skip-bad"],
        ["export", "--output", "{file}"],
        ["export", "--output", "{file}/nothing"],
        ["export", "--output", "{file}.new"],
        ["export", "--with-secrets", "--output", "{file}.new"],
        ["import", "{file}", "--json"],
        ["import", "{file}/nothing", "--json"],
    ],
)
def test_the_name_of_a_file_is_said_without_its_control_characters(
    hostile: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    new(Proxy)
    name, *more = (word.format(file=hostile) for word in words)
    assert said(run(name, *more).all)


def test_so_is_one_that_is_asked_about(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    new(Proxy)
    refused = run("export", "--with-secrets", "--output", f"{hostile}.new")
    assert "Write passwords in plain text to" in said(refused.err)


@pytest.mark.parametrize(
    "words",
    [
        ["resourcepool_import", "fine.csv", HOSTILE],  # as a shell expands *.csv
        ["resourcepool_status", "--limit", HOSTILE],
        ["resourcepool_queues", HOSTILE],
        ["resourcepool_export", f"--{HOSTILE}"],
        ["resourcepool_import", HOSTILE],
        ["resourcepool_close", HOSTILE, "1", "--reason", "x"],
    ],
)
def test_words_that_are_not_understood_are_said_without_them(spawn: Spawner, words: list[str]) -> None:
    refused = spawn(manage, *words)
    assert refused.wait()
    assert said(refused.output)


@pytest.mark.parametrize("form", ["csv", "json", "lines"])
def test_a_lone_carriage_return_does_not_write_over_a_line_of_an_export(form: str) -> None:
    new(Proxy, notes="good\rowned", tags="eu")
    out: Any = Terminal()
    call_command("resourcepool_export", "--format", form, stdout=out, no_color=True)
    assert "owned" in out.getvalue()
    assert "\r" not in out.getvalue()


def test_in_a_file_everything_stays_as_it_is() -> None:
    new(Proxy, notes="good\rowned\x1b")
    out = io.StringIO()
    call_command("resourcepool_export", stdout=out, no_color=True)
    assert "good\rowned\x1b" in out.getvalue()
    assert out.getvalue().endswith("\r\n")
