"""The command: what people and programs get to see of an import."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from resourcepool.management.commands import resourcepool_import as command
from resourcepool.models import Proxy
from resourcepool.resources import import_plan
from tests.management.command_runner import Ran, run

pytestmark = pytest.mark.django_db


class Import:
    """Imports a file with this text, or the same file again."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __call__(self, text: str | None, *options: Any) -> Ran:
        if text is not None:
            self.file.write_text(text, encoding="utf-8")
        return run("import", self.file, *options)


@pytest.fixture
def imported(tmp_path: Path) -> Import:
    return Import(tmp_path / "proxies.csv")


def test_the_end_says_what_was_done(imported: Import) -> None:
    both = imported("a.example:80\nb.example:80")
    assert both == Ran("Imported 2 proxies: 2 new, 0 changed, 0 unchanged, 0 retired.\n", "", 0)
    assert imported("a.example:80").out == "Imported 1 proxy: 0 new, 0 changed, 1 unchanged, 0 retired.\n"
    synced = imported("a.example:80", "--sync").out
    assert synced == "Imported 1 proxy: 0 new, 0 changed, 1 unchanged, 1 retired.\n"


def test_the_end_says_what_else_to_know(imported: Import) -> None:
    imported("host,port,weight\na.example,80,2\nb.example,80,2")
    imported("host,port,weight\na.example,80,2", "--sync")
    assert imported("host,port,weight\na.example,80,3\nb.example,80,2").out.splitlines() == [
        "Imported 2 proxies: 0 new, 0 changed, 2 unchanged, 0 retired.",
        '1 existing row differs from the file and is left unchanged; "update" takes its values.',
        '1 is still retired; "sync" returns it to service.',
    ]
    assert imported(None, "--sync", "--update").out.splitlines() == [
        "Imported 2 proxies: 0 new, 2 changed, 0 unchanged, 0 retired.",
        "1 changed row returns to service.",
    ]


def test_a_dry_run_says_would(imported: Import) -> None:
    assert imported("a.example:80", "--dry-run").out.startswith("Would import 1 proxy: 1 new")
    assert not Proxy.objects.exists()


def test_bad_lines_are_a_command_error_that_lists_them(imported: Import) -> None:
    refused = imported("\n".join(f"p{n}.example:0:joe:secret" for n in range(25)))
    first, *lines = refused.err.splitlines()
    assert first == f"{imported.file}: nothing was imported; bad lines: 25"
    assert lines[0] == "  line 1: port: not a whole number from 1 to 65535"
    assert lines[20:] == ["  and 5 more"]
    assert "secret" not in refused.all
    assert not Proxy.objects.exists()


def test_skipped_lines_are_shown_on_standard_error(imported: Import) -> None:
    done = imported("a.example:80\nb.example:0", "--skip-bad", "--sync")
    assert done.out.splitlines() == [
        "Imported 1 proxy: 1 new, 0 changed, 0 unchanged, 0 retired.",
        "1 bad line skipped.",
        "Nothing is retired, because lines were skipped.",
    ]
    assert done.err.splitlines() == ["  line 2: port: not a whole number from 1 to 65535"]


def test_json_is_one_object_on_standard_output(imported: Import) -> None:
    done = imported("a.example:80\na.example:81\nb.example:0", "--skip-bad", "--json")
    bad = {"line": 3, "field": "port", "reason": "not a whole number from 1 to 65535"}
    assert done.json == {
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
    shown = imported(None, "--json").json
    assert (shown["ok"], shown["bad"], shown["bad_count"]) == (False, [bad], 1)
    assert imported("", "--json").json == {"ok": False, "error": f"{imported.file}: empty: no rows"}


def test_a_file_that_is_not_there_is_one_clear_sentence(imported: Import) -> None:
    assert imported(None).err == f"{imported.file}: cannot be read: No such file or directory\n"


def test_a_dash_reads_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"a.example:80\n")))
    Proxy.objects.create(host="b.example", port=80)
    run("import", "-", "--sync")
    assert Proxy.objects.get(host="a.example").in_service
    assert Proxy.objects.get(host="b.example").reason == "not in standard input"
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"\0")))
    assert run("import", "-").err.startswith("standard input: line 1, byte 1 is a NUL")


def test_progress_is_shown_only_when_it_takes_long(imported: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"p{n}.example:80\n" for n in range(1_100))
    assert imported(text).err == ""
    monkeypatch.setattr(command._Progress, "every", 0.0)
    Proxy.objects.all().delete()
    assert imported(text).err.splitlines() == [
        "read 1,000",
        "stored 500 of 1,100",
        "stored 1,000 of 1,100",
        "stored 1,100 of 1,100",
        "committing",
    ]
    assert imported(text, "--verbosity", 0).all == ""


def test_ctrl_c_says_that_nothing_was_imported(imported: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command._Progress, "__call__", interrupt)
    stopped = imported("a.example:80")
    assert (stopped.err, stopped.code) == ("interrupted; nothing was imported\n", 130)
    assert not Proxy.objects.exists()


@pytest.mark.parametrize("text", ["a.example:80", "# nothing new\nb.example:80"])
def test_ctrl_c_during_the_commit_says_that_perhaps_it_was_imported(
    imported: Import, monkeypatch: pytest.MonkeyPatch, text: str
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
    stopped = imported(text, "--sync")
    assert ("the import is all-or-nothing; run it again" in stopped.err, stopped.code) == (True, 130)
    assert not Proxy.objects.get(host="c.example").in_service


def test_ctrl_c_after_the_import_says_that_it_was_imported(
    imported: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command.Command, "_show", interrupt)
    assert imported("a.example:80").err == "interrupted; the import is complete\n"
    assert Proxy.objects.exists()
