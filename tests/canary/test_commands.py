"""No command reveals a secret or passes hostile text to the terminal."""

import io
import itertools
from argparse import _SubParsersAction
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command, get_commands, load_command_class
from django.core.management.base import BaseCommand
from django.db import connection

from resourcepool.models import Proxy
from tests.canary.lines import LINES, WHY
from tests.canary.planted import (
    CONTROLS,
    DATABASE,
    DATABASE_URLS,
    PASSWORD,
    SEALED,
    formulas_in,
    found_in,
)
from tests.management.command_runner import run
from tests.spawned import Spawner

FOR_EVER = {"--watch", "--every"}  # these do the same again
THEIR_WORDS = {"holder", "host", "close", "status"}  # what a person types is said again: it is theirs
COMMANDS = sorted(name.removeprefix("resourcepool_") for name in get_commands() if "resourcepool_" in name)


def options_of(name: str) -> set[str]:
    """Return the long options that this command has and others do not."""
    command = load_command_class(get_commands()[f"resourcepool_{name}"], f"resourcepool_{name}")
    own = command.create_parser("manage.py", name)
    shared = BaseCommand().create_parser("manage.py", "any")
    subs = [action.choices.values() for action in own._actions if isinstance(action, _SubParsersAction)]
    parsers = [own, *itertools.chain(*subs)]
    words = {word for parser in parsers for word in parser._option_string_actions if word[:2] == "--"}
    return words - set(shared._option_string_actions)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_walked_with_every_option(name: str) -> None:
    assert name in LINES, f"not walked: resourcepool_{name}"
    used = {word for words in LINES[name] for word in words}
    assert not options_of(name) - used - FOR_EVER, "not walked"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Any]:
    contents = {
        "good": f"http://joe:{PASSWORD}@new.example:8\n",
        "bad": f"http://joe:{PASSWORD}@new.example:8\nhttp://joe:{PASSWORD}@b.example:x\n{PASSWORD}\n",
        "worse": f"host,port,password\nb.example,8,{PASSWORD}\0\n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    return {"file": tmp_path / "out", **{name: tmp_path / name for name in contents}}


def batches(lines: list[list[str]]) -> Iterator[list[list[str]]]:
    """Yield these lines, those together of which none but the last changes much."""
    batch = []
    for words in lines:
        batch.append(words)
        if "--dry-run" not in words and {"--reason", "--yes"}.intersection(words):
            yield batch
            batch = []
    if batch:
        yield batch


@pytest.mark.parametrize(("name", "lines"), [(name, lines) for name in LINES for lines in batches(LINES[name])])
def test_it_shows_none(
    name: str, lines: list[list[str]], checkable: Proxy, files: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    if connection.vendor == "sqlite":  # the others would be refused with it
        monkeypatch.setitem(connection.settings_dict, "PASSWORD", DATABASE)
    for words in lines:
        files["file"].unlink(missing_ok=True)
        typed = [word.format(pk=checkable.pk, **files) if "{" in word else word for word in words]
        shown = run(name, *typed).all
        assert shown or name == "export"
        said = shown.replace(PASSWORD, "") if name in THEIR_WORDS and PASSWORD in typed else shown
        assert not found_in(said), words
        assert SEALED not in shown, words
        assert name == "export" or not CONTROLS & set(
            shown
        )  # a file has what was written; a terminal: see below
        if name == "export" and shown.startswith("id,"):
            assert formulas_in(shown) == []
        if files["file"].exists() and "--with-secrets" not in words:
            assert not found_in(files["file"].read_text())


@pytest.mark.parametrize("words", [[], ["--events"], ["--format", "lines"]])
def test_what_is_exported_to_a_terminal_does_not_speak_to_it(words: list[str], planted: Proxy) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    call_command("resourcepool_export", *words, stdout=out, no_color=True)
    assert "script" in out.getvalue()
    assert not CONTROLS & set(out.getvalue())


def test_it_shows_none_when_the_database_does_not_answer(spawn: Spawner) -> None:
    url = DATABASE_URLS.get(connection.vendor, DATABASE_URLS["mysql"])
    said = spawn(ask_everything, DATABASE_URL=url).succeed(timeout=200)
    assert not found_in(said)
    for name in COMMANDS:
        assert f"resourcepool_{name} ended with 0" not in said, said
        assert f"resourcepool_{name} ended with" in said, said


def ask_everything() -> None:
    """Run each command once."""
    first = {"close": LINES["close"][0], "drain": ["proxy", "--all", *WHY, "--yes"], "import": ["/dev/stdin"]}
    for name in COMMANDS:
        words = first.get(name, ["held.example"] if name == "why" else [])
        if name in ("check", "fix"):
            words = ["proxy", "--dry-run"]
        ended = run(name, *words)
        print(ended.all, f"resourcepool_{name} ended with {ended.code}", flush=True)
