"""No command gives a secret away, whatever it is asked for, or lets hostile text speak to the terminal."""

import io
import itertools
from argparse import _SubParsersAction
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command, get_commands, load_command_class
from django.core.management.base import BaseCommand
from django.db import connection

from resourcepool.models import Proxy
from tests.canary.planted import (
    DATABASE,
    DATABASE_URLS,
    HOSTILE,
    PASSWORD,
    SCRIPT,
    SEALED,
    formulas_in,
    found_in,
)
from tests.management.operated import run
from tests.spawned import Spawner

ADDRESS = f"http://joe:{PASSWORD}@held.example:3128"
WHY = ["--reason", "x"]

# What each command is asked for. Every option it has must occur; those that are left out are listed below.
LINES: dict[str, list[list[str]]] = {
    "beat": [[], ["--install"], ["--json"]],
    "check": [[], ["--json"], ["proxy", "--dry-run"], ["proxy", "{pk}"], ["proxy", "--believe"]],
    "close": [
        ["--all", *WHY, "--dry-run"],
        ["--all", *WHY, "--json", "--dry-run", "--limit", "5"],
        ["--holder", PASSWORD, *WHY],
        ["--host", PASSWORD, *WHY],
        ["proxy", "{pk}", *WHY, "--dry-run"],
        ["proxy", "nonsense", *WHY],
        ["--all", *WHY, "--yes"],
    ],
    "consume": [["nowhere"], [HOSTILE, "--drain-within", "-1"]],
    "doctor": [[], ["--json"], ["--no-write"], ["--database", "default"], ["--database", "nowhere"]],
    "drain": [
        ["proxy", "--all", *WHY, "--dry-run", "--json"],
        ["proxy", "--where", f"password={PASSWORD}", *WHY],
        ["proxy", "--where", f"username={SCRIPT}", *WHY, "--dry-run", "--limit", "3"],
        ["proxy", "--tag", SCRIPT, *WHY],
        ["proxy", "{pk}", *WHY, "--for", "5m"],
        ["proxy", "--all", *WHY, "--yes", "--wait", "0"],
        ["proxy", "{pk}", "--back"],
    ],
    "export": [
        [],
        ["proxy", "--format", "json"],
        ["--format", "lines", "--events", "--since", "1h"],
        ["--events"],
        ["--where", f"password={PASSWORD}"],
        ["--tag", "x"],
        ["--output", "{file}"],
        ["--with-secrets", "--yes"],
        ["--with-secrets", "--yes", "--output", "{file}"],
    ],
    "fix": [[], ["--json"], ["proxy", "--dry-run"], ["proxy", "{pk}"], ["proxy", "--believe"]],
    "import": [
        ["{good}"],
        ["{good}", "--dry-run", "--json"],
        ["{good}", "--update", "--sync", "--dry-run"],
        ["{bad}"],
        ["{bad}", "--skip-bad", "--json"],
        ["{worse}", "--json"],
    ],
    "operate": [
        ["free", "proxy", "--all", *WHY, "--dry-run", "--json"],
        ["drain", "proxy", "--where", f"password={PASSWORD}", *WHY],
        ["drain", "proxy", "--where", f"username={SCRIPT}", *WHY, "--dry-run", "--limit", "3"],
        ["quarantine", "proxy", "--tag", SCRIPT, *WHY, "--for", "5m"],
        ["reserve", "proxy", "--all", *WHY, "--yes", "--name", "Ann"],
        ["return_to_service", "proxy", "{pk}"],
        ["acknowledge", "proxy", "{pk}", *WHY],
    ],
    "queues": [
        [],
        ["show", "--json", "--limit", "5"],
        ["show", HOSTILE],
        ["show", SCRIPT],
        ["plan", HOSTILE, "--without", HOSTILE, "--with", "b:2", "--labels", f"zone={SCRIPT}"],
        ["plan", HOSTILE, "--without", SCRIPT],
        ["add", HOSTILE, "1..3", "--parameter", "p", "--label", f"zone={SCRIPT}", "--json"],
        ["add", HOSTILE, HOSTILE],
        ["add", SCRIPT, "1", "--new", "--strategy", "sticky", "--heartbeat", "1s", "--judge-dead", "3s"],
        ["add", "fine", "1", "--new", "--reload", "1s", "--drain-within", "9s", "--judge-dead", "1s"],
        ["change", HOSTILE, HOSTILE, "--parameter", SCRIPT, "--label", "zone=eu"],
        ["change", HOSTILE, HOSTILE, "--no-label"],
        ["drain", HOSTILE, HOSTILE, "--dry-run"],
        ["remove", HOSTILE, HOSTILE, "--dry-run"],
        ["remove", HOSTILE, HOSTILE],
        ["remove", HOSTILE, SCRIPT],
        ["pin", HOSTILE, HOSTILE, "--to", HOSTILE],
        ["unpin", HOSTILE, HOSTILE],
        ["drain", HOSTILE, HOSTILE],
        ["undrain", HOSTILE, SCRIPT],
        ["pause", HOSTILE],
        ["resume", HOSTILE],
    ],
    "rotate_secrets": [[]],
    "status": [
        [],
        ["proxy"],
        ["--leases", "--json", "--limit", "5"],
        ["--holder", PASSWORD],
        ["--host", "x"],
        [PASSWORD],
    ],
    "streams": [
        [],
        ["show", "--json"],
        ["show", HOSTILE],
        ["show", SCRIPT],
        ["show", "--standing", "blocked", "--limit", "1"],
        ["show", "--containing", HOSTILE, "--after", SCRIPT],
        ["add", HOSTILE],
        ["add", "one", "--retries", "1", "--retry-delay", "1", "--most-deaths", "1", "--lanes", "2"],
        ["add", "two", "--term-ttl", "1", "--lock-delay", "1", "--done-kept", "1", "--on-failure", "skip"],
        ["add", "three", "--lanes", "0"],
        ["tasks", HOSTILE],
        ["tasks", HOSTILE, "--json", "--state", "blocked", "--limit", "1"],
        ["tasks", SCRIPT, "--after", HOSTILE],
        ["pause", HOSTILE],
        ["resume", HOSTILE],
        ["resume", SCRIPT],
        ["retry", HOSTILE, HOSTILE],
        ["retry", HOSTILE, "--state", "blocked", "--yes"],
        ["discard", HOSTILE, HOSTILE, *WHY],
    ],
    "dispenser": [
        [],
        ["show", "--json"],
        ["show", HOSTILE],
        ["show", SCRIPT],
        ["show", "--after", HOSTILE],
        ["tasks", HOSTILE],
        ["tasks", HOSTILE, "--json", "--state", "failed", "--limit", "1"],
        ["tasks", SCRIPT, "--after", HOSTILE],
        ["show", "--standing", "paused", "--limit", "1"],
        ["show", "--containing", HOSTILE, "--after", SCRIPT],
        ["pause", HOSTILE],
        ["resume", HOSTILE],
        ["resume", SCRIPT],
        ["add", HOSTILE, SCRIPT, "1"],
        ["add", "films", "--new", SCRIPT, "1", "b", "2.5"],
        ["add", "films", HOSTILE, SCRIPT],
        ["free", HOSTILE, HOSTILE, SCRIPT],
        ["retry", HOSTILE, HOSTILE],
        ["retry", HOSTILE, "--state", "failed", "--yes"],
        ["discard", HOSTILE, HOSTILE, *WHY],
        ["clear", HOSTILE, "--yes"],
        ["clear", SCRIPT],
    ],
    "submit": [
        [HOSTILE, SCRIPT],
        ["nowhere", HOSTILE],
        [HOSTILE, SCRIPT, HOSTILE],
        [HOSTILE, SCRIPT, "{{}}", "--key", "k", "--lane", SCRIPT, "--task-time", "2026-12-01T02:00:00Z"],
    ],
    "channels": [
        [],
        ["show", "--json"],
        ["show", HOSTILE],
        ["show", SCRIPT],
        ["publish", HOSTILE, "1"],
        ["publish", SCRIPT, "1"],
        ["publish", SCRIPT, HOSTILE],
        ["listen", SCRIPT, "--from", "start", "--timeout", "0"],
        ["listen", SCRIPT, "--from", HOSTILE],
        ["move", HOSTILE, HOSTILE, "--to", "start", "--yes"],
        ["move", HOSTILE, HOSTILE, "--to", HOSTILE, "--yes"],
        ["forget", HOSTILE, SCRIPT, "--yes"],
        ["forget", HOSTILE, HOSTILE, "--yes"],
        ["prune", HOSTILE, "--yes"],
        ["remove", HOSTILE, "--yes"],
    ],
    "sweep": [[]],
    "timers": [
        ["--threads", "0", "--celery"],
        ["--label", HOSTILE],
        ["--label", SCRIPT],
        ["--node-version", HOSTILE],
        ["--late-rate", "0"],
        ["--drain-within", "-1"],
    ],
    "locks": [
        [],
        ["list", "--kind", "lock", "--prefix", SCRIPT, "--held", "--waited", "--json"],
        ["list", "--after", HOSTILE, "--limit", "1"],
        ["list", "--limit", "1"],
        ["show", HOSTILE],
        ["show", SCRIPT],
        ["show", SCRIPT, "--json"],
        ["cycles"],
        ["cycles", "--json"],
        ["free", SCRIPT, "--kind", "lock", *WHY, "--dry-run"],
        ["free", SCRIPT, *WHY],
        ["free", HOSTILE, *WHY],
    ],
    "topics": [
        [],
        ["show", "--json"],
        ["show", HOSTILE],
        ["show", SCRIPT],
        ["timers", HOSTILE],
        ["timers", HOSTILE, "--json", "--state", "pending", "--limit", "1"],
        ["timers", SCRIPT, "--after", HOSTILE],
        ["show", "--standing", "paused", "--limit", "1"],
        ["show", "--containing", HOSTILE, "--after", SCRIPT],
        ["pause", HOSTILE],
        ["resume", HOSTILE],
        ["resume", SCRIPT],
        ["fire", HOSTILE, HOSTILE],
        ["cancel", HOSTILE, SCRIPT],
        ["cancel", HOSTILE, "--state", "pending", "--yes"],
        ["retry", HOSTILE, HOSTILE],
        ["discard", HOSTILE, HOSTILE, *WHY],
    ],
    "why": [
        ["held.example"],
        ["{pk}", "--pool", "proxy", "--json"],
        [ADDRESS],
        [ADDRESS, "--json"],
        [f"http://joe:{PASSWORD}@elsewhere:3128"],
        [f"joe:{PASSWORD}@held.example"],
        ["stranger", "--limit", "3"],
        ["script"],
        ["lock", SCRIPT],
        ["semaphore", HOSTILE],
    ],
}
CONTROLS = set("\x1b\x07\u202e")
FOR_EVER = {
    "channels": {"--watch"},
    "dispenser": {"--watch"},
    "locks": {"--watch"},
    "queues": {"--watch"},
    "status": {"--watch"},
    "streams": {"--watch"},
    "sweep": {"--every"},
    "topics": {"--watch"},
}  # these do the same again
THEIR_WORDS = {"holder", "host", "close", "status"}  # what a person types is said again: it is theirs
COMMANDS = sorted(name.removeprefix("resourcepool_") for name in get_commands() if "resourcepool_" in name)


def options_of(name: str) -> set[str]:
    """Return the long options that this command has and others do not."""
    command = load_command_class("resourcepool", f"resourcepool_{name}")
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
    assert not options_of(name) - used - FOR_EVER.get(name, set()), "not walked"


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


@pytest.mark.parametrize(("name", "words"), [(name, words) for name in LINES for words in LINES[name]])
def test_it_shows_none(
    name: str, words: list[str], checkable: Proxy, files: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    if connection.vendor == "sqlite":  # the others would be refused with it
        monkeypatch.setitem(connection.settings_dict, "PASSWORD", DATABASE)
    typed = [word.format(pk=checkable.pk, **files) if "{" in word else word for word in words]
    shown = run(name, *typed).all
    assert shown or name == "export"
    said = shown.replace(PASSWORD, "") if name in THEIR_WORDS and PASSWORD in typed else shown
    assert not found_in(said)
    assert SEALED not in shown
    assert name == "export" or not CONTROLS & set(shown)  # a file has what was written; a terminal: see below
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


@pytest.mark.timeout(240)
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
