"""The operator's commands: confirmation, exit codes and help."""

import io
import os
import signal
import subprocess
import sys
from typing import Any

import pytest
from django.core.management import CommandError, get_commands, load_command_class
from django.db import OperationalError
from django.test import override_settings
from django.utils import translation

from resourcepool.db.dialect import DbLater
from resourcepool.management import base
from resourcepool.management.base import OperatorCommand, actor
from resourcepool.models import Proxy
from tests.app.rows import new
from tests.management.command_runner import manage
from tests.spawned import ROOT, Spawner

NO_TEXT = "\udcff"  # as Python reads the byte 0xff
OURS = [name for name in sorted(get_commands()) if name.startswith("resourcepool_")]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def ask(monkeypatch: pytest.MonkeyPatch, answer: str, *, yes: bool = False) -> str:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    out, err = io.StringIO(), io.StringIO()
    OperatorCommand(stdout=out, stderr=err).confirm("Close all 3?", yes=yes)
    assert out.getvalue() == ""  # a program may read it
    return err.getvalue()


class TestAsking:
    @pytest.mark.parametrize("answer", ["y\n", "Yes\n"])
    def test_yes_goes_on(self, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
        assert ask(monkeypatch, answer) == "Close all 3? [y/N] "

    @pytest.mark.parametrize("answer", ["n\n", "\n", "", "yeah\n"])
    def test_anything_else_does_not(self, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
        with pytest.raises(CommandError, match="not confirmed; nothing was changed"):
            ask(monkeypatch, answer)

    def test_is_left_out_when_it_was_answered_before(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert ask(monkeypatch, "", yes=True) == ""


def test_a_database_that_fails_is_one_sentence() -> None:
    class Broken(OperatorCommand):
        def run(self, **options: Any) -> None:
            raise OperationalError("server has gone away")

    with pytest.raises(
        CommandError,
        match=r"^database error: server has gone away; check it with `manage.py resourcepool_doctor`$",
    ):
        Broken().handle()


class TestTheActor:
    def test_is_who_sits_at_the_keyboard(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("SUDO_USER", raising=False)
        monkeypatch.setenv("LOGNAME", "alice")
        monkeypatch.setattr("socket.gethostname", lambda: "ops1")
        assert actor() == "alice@ops1 (shell)"
        monkeypatch.setenv("SUDO_USER", "bob")
        assert actor() == "bob@ops1 (shell)"
        monkeypatch.setenv("SUDO_USER", "al\udcffice")
        assert ascii(actor()) == "'al?ice@ops1 (shell)'", "databases take no surrogates"
        monkeypatch.setenv("SUDO_USER", "a" * 500)
        monkeypatch.setattr("socket.gethostname", lambda: "h" * 500)
        assert len(actor()) <= 150, "it fits into the history"

    def test_has_a_number_where_nobody_has_a_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def nobody() -> str:
            raise KeyError("uid not found")

        monkeypatch.delenv("SUDO_USER", raising=False)
        monkeypatch.setattr(base.getpass, "getuser", nobody)
        assert actor().startswith(f"uid {os.getuid()}@")


@pytest.mark.parametrize("name", OURS)
def test_help_has_an_example_and_the_exit_codes_of_every_command(name: str) -> None:
    text = load_command_class(get_commands()[name], name).create_parser("manage.py", name).format_help()
    assert f"\n  manage.py {name}" in text
    assert "Exit codes: 0" in text
    assert text.lower().count("exit code") == 1
    speaks = "grace period for running handlers after SIGTERM" in " ".join(text.split())
    assert speaks is name.endswith(("_consume", "_timers"))


class TestAsAProgram:
    def start(self, url: str, *words: str | bytes, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), *words],
            env={**os.environ, "DATABASE_URL": url, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            process_group=0,
        )

    def test_ctrl_c_ends_a_watch_quietly(self, database_url: str) -> None:
        with self.start(database_url, "resourcepool_status", "proxy", "--watch", "0.2") as watch:
            assert watch.stdout
            assert watch.stderr
            assert watch.stdout.readline().startswith("20")  # the time of the report
            assert watch.stdout.readline().startswith("pool ")
            watch.send_signal(signal.SIGINT)
            watch.stdout.read()
            assert watch.stderr.read() == ""
        assert watch.returncode == 0

    def test_a_reader_that_has_seen_enough_is_no_error(self, database_url: str) -> None:
        Proxy.objects.bulk_create([Proxy(host=f"h{number}.example", port=1) for number in range(3_000)])
        with self.start(database_url, "resourcepool_export") as export:
            assert export.stdout
            assert export.stderr
            export.stdout.readline()
            export.stdout.close()
            assert export.stderr.read() == ""
        assert export.returncode == base.BROKEN_PIPE

    def test_what_the_terminal_cannot_show_is_a_question_mark(self, database_url: str) -> None:
        proxy = new(Proxy, holder="Bärbel", busy_before=DbLater(60))
        poor = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
        with self.start(database_url, "resourcepool_why", "proxy", str(proxy.pk), **poor) as ended:
            out, err = ended.communicate()
        assert (ended.returncode, err) == (0, "")
        assert "B?rbel" in out

    @pytest.mark.parametrize("words", [["help", "resourcepool_status"], ["resourcepool_status", "--help"]])
    def test_so_it_is_in_the_help(self, spawn: Spawner, words: list[str]) -> None:
        assert "??" in spawn(manage_on_a_poor_terminal, *words).succeed()

    def test_an_export_is_utf_8_whatever_the_terminal_can_show(self, spawn: Spawner) -> None:
        new(Proxy, notes="Bücher")
        assert "Bücher" in spawn(manage_on_a_poor_terminal, "resourcepool_export").succeed()

    @pytest.mark.parametrize(
        "words",
        [
            ["resourcepool_why", NO_TEXT],
            ["resourcepool_close", "proxy", "--holder", f"a{NO_TEXT}", "--reason", "x"],
            ["resourcepool_drain", "proxy", "--all", "--yes", "--reason", NO_TEXT],
            ["resourcepool_drain", "proxy", NO_TEXT, "--reason", "x"],
            ["resourcepool_export", "proxy", "--output", NO_TEXT],
            ["resourcepool_import", NO_TEXT],
            ["resourcepool_doctor", "--database", NO_TEXT],
        ],
    )
    def test_words_that_are_no_text_are_refused(self, spawn: Spawner, words: list[str]) -> None:
        ended = spawn(manage, *words)
        assert ended.wait() == 2
        assert "\\udcff' is not valid UTF-8" in ended.output
        assert "Traceback" not in ended.output

    def test_so_are_the_bytes_of_a_shell(self, database_url: str) -> None:
        with self.start(database_url, "resourcepool_why", b"\xff") as ended:
            out, err = ended.communicate()
        assert (ended.returncode, out) == (2, "")
        assert "\\udcff' is not valid UTF-8" in err

    @pytest.mark.usefixtures("database_url")
    def test_an_unknown_pool_ends_with_1_and_an_unknown_option_with_2(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        new(Proxy)
        for word, code in (("nope", 1), ("--nope", 2)):
            with pytest.raises(SystemExit) as ended:
                manage("resourcepool_status", word)
            assert ended.value.code == code
            out, err = capsys.readouterr()
            assert out == ""
            assert "nope" in err


def manage_on_a_poor_terminal(*words: str) -> None:
    """Run ``manage.py`` in Chinese, with ASCII output."""
    sys.stdout.reconfigure(encoding="ascii", errors="strict")
    with override_settings(LANGUAGE_CODE="zh-hans"), translation.override("zh-hans"):
        manage(*words)
