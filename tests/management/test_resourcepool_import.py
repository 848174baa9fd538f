"""The command: what people and programs get to see of an import."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from resourcepool.management.commands import resourcepool_import as command
from resourcepool.models import Proxy
from resourcepool.resources import import_plan

pytestmark = pytest.mark.django_db


class Run:
    """The command, run on a file with this text."""

    def __init__(self, file: Path) -> None:
        self.file, self.out, self.err = file, "", ""

    def __call__(self, text: str | None, *options: str, **more: Any) -> str:
        if text is not None:
            self.file.write_text(text, encoding="utf-8")
        out, err = io.StringIO(), io.StringIO()
        try:
            call_command("resourcepool_import", str(self.file), *options, stdout=out, stderr=err, **more)
        finally:
            self.out, self.err = out.getvalue(), err.getvalue()
        return self.out


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / "proxies.csv")


def test_the_end_says_what_was_done(run: Run) -> None:
    assert (
        run("a.example:80\nb.example:80") == "Imported 2 proxies: 2 new, 0 changed, 0 unchanged, 0 retired.\n"
    )
    assert run("a.example:80") == "Imported 1 proxy: 0 new, 0 changed, 1 unchanged, 0 retired.\n"
    assert run("a.example:80", "--sync") == "Imported 1 proxy: 0 new, 0 changed, 1 unchanged, 1 retired.\n"
    assert run.err == ""


def test_the_end_says_what_else_to_know(run: Run) -> None:
    run("host,port,weight\na.example,80,2\nb.example,80,2")
    run("host,port,weight\na.example,80,2", "--sync")
    assert run("host,port,weight\na.example,80,3\nb.example,80,2").splitlines() == [
        "Imported 2 proxies: 0 new, 0 changed, 2 unchanged, 0 retired.",
        '1 existing row differs from the file and is left unchanged; "update" takes its values.',
        '1 is still retired; "sync" returns it to service.',
    ]
    assert run(None, "--sync", "--update").splitlines() == [
        "Imported 2 proxies: 0 new, 2 changed, 0 unchanged, 0 retired.",
        "1 changed row returns to service.",
    ]


def test_a_dry_run_says_would(run: Run) -> None:
    assert run("a.example:80", "--dry-run").startswith("Would import 1 proxy: 1 new")
    assert not Proxy.objects.exists()


def test_bad_lines_are_a_command_error_that_lists_them(run: Run) -> None:
    with pytest.raises(CommandError) as refused:
        run("\n".join(f"p{n}.example:0:joe:secret" for n in range(25)))
    first, *lines = str(refused.value).splitlines()
    assert first == f"{run.file}: nothing was imported; bad lines: 25"
    assert lines[0] == "  line 1: port: not a whole number from 1 to 65535"
    assert lines[20:] == ["  and 5 more"]
    assert "secret" not in str(refused.value)
    assert not Proxy.objects.exists()


def test_skipped_lines_are_shown_on_standard_error(run: Run) -> None:
    run("a.example:80\nb.example:0", "--skip-bad", "--sync")
    assert run.out.splitlines() == [
        "Imported 1 proxy: 1 new, 0 changed, 0 unchanged, 0 retired.",
        "1 bad line skipped.",
        "Nothing is retired, because lines were skipped.",
    ]
    assert run.err.splitlines() == ["  line 2: port: not a whole number from 1 to 65535"]


def test_json_is_one_object_on_standard_output(run: Run) -> None:
    run("a.example:80\na.example:81\nb.example:0", "--skip-bad", "--json")
    bad = {"line": 3, "field": "port", "reason": "not a whole number from 1 to 65535"}
    assert json.loads(run.out) == {
        "ok": True,
        "dry_run": False,
        "total": 2,
        "new": 2,
        "changed": 0,
        "unchanged": 0,
        "returned": 0,
        "retired": 0,
        "differing": 0,
        "uncompared": 0,
        "staying_retired": 0,
        "repeated": 0,
        "bad": [bad],
        "bad_count": 1,
    }
    with pytest.raises(CommandError):
        run(None, "--json")
    shown = json.loads(run.out)
    assert (shown["ok"], shown["bad"], shown["bad_count"]) == (False, [bad], 1)
    with pytest.raises(CommandError):
        run("", "--json")
    assert json.loads(run.out) == {"ok": False, "error": f"{run.file}: empty: no rows"}


def test_a_file_that_is_not_there_is_one_clear_sentence(run: Run) -> None:
    with pytest.raises(CommandError) as refused:
        run(None)
    assert str(refused.value) == f"{run.file}: cannot be read: No such file or directory"


def test_a_dash_reads_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"a.example:80\n")))
    Proxy.objects.create(host="b.example", port=80)
    call_command("resourcepool_import", "-", "--sync", stdout=io.StringIO())
    assert Proxy.objects.get(host="a.example").in_service
    assert Proxy.objects.get(host="b.example").reason == "not in standard input"
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"\0")))
    with pytest.raises(CommandError, match=r"^standard input: line 1, byte 1 is a NUL"):
        call_command("resourcepool_import", "-")


def test_progress_is_shown_only_when_it_takes_long(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"p{n}.example:80\n" for n in range(1_100))
    run(text)
    assert run.err == ""
    monkeypatch.setattr(command._Progress, "every", 0.0)
    Proxy.objects.all().delete()
    run(text)
    assert run.err.splitlines() == [
        "read 1,000",
        "stored 500 of 1,100",
        "stored 1,000 of 1,100",
        "stored 1,100 of 1,100",
        "committing",
    ]
    assert run(text, verbosity=0) == run.err == ""


def test_ctrl_c_says_that_nothing_was_imported(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command._Progress, "__call__", interrupt)
    with pytest.raises(CommandError, match="interrupted; nothing was imported") as refused:
        run("a.example:80")
    assert refused.value.returncode == 130
    assert not Proxy.objects.exists()


@pytest.mark.parametrize("text", ["a.example:80", "# nothing new\nb.example:80"])
def test_ctrl_c_during_the_commit_says_that_perhaps_it_was_imported(
    run: Run, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    Proxy.objects.create(host="b.example", port=80)
    Proxy.objects.create(host="c.example", port=80)
    fail_if_locked = import_plan.fail_if_locked

    @contextmanager
    def interrupted(using: str) -> Iterator[None]:
        with fail_if_locked(using):
            yield
        raise KeyboardInterrupt

    monkeypatch.setattr(import_plan, "fail_if_locked", interrupted)
    with pytest.raises(CommandError, match="the import is all-or-nothing; run it again") as refused:
        run(text, "--sync")
    assert refused.value.returncode == 130
    assert not Proxy.objects.get(host="c.example").in_service


def test_ctrl_c_after_the_import_says_that_it_was_imported(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command.Command, "_show", interrupt)
    with pytest.raises(CommandError, match="interrupted; the import is complete"):
        run("a.example:80")
    assert Proxy.objects.exists()
