"""Resources and their history, taken out: by whom, to where, and what never leaves."""

import csv
import io
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command

from resourcepool.management.commands import resourcepool_export as command
from resourcepool.models import Event, Proxy
from resourcepool.status import export
from tests.app.models import Device
from tests.app.rows import columns, hold, new, several
from tests.history.recorded import told
from tests.management.command_runner import run

pytestmark = pytest.mark.usefixtures("history")

CANARY = "CANARY-hunter2"


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


class TestCsv:
    def test_has_what_tells_them_apart_first_and_their_state_last(self) -> None:
        proxy = new(Proxy, country="US", tags="eu fast", username="joe")
        hold(proxy, holder="crawler 7")
        shown = run("export")
        names = shown.out.splitlines()[0].split(",")
        assert names[:6] == ["id", "scheme", "host", "port", "username", "country"]
        assert names[-1] == "state"
        (row,) = rows_of(shown.out)
        assert (row["id"], row["host"], row["tags"]) == (str(proxy.pk), proxy.host, "eu fast")
        assert (row["holder"], row["state"]) == ("crawler 7", "leased")
        assert shown.code == 0

    def test_of_any_pool(self) -> None:
        device = new(Device)
        (row,) = rows_of(run("export", "testapp.Device").out)
        assert (row["id"], row["name"], row["owner_id"]) == (str(device.pk), device.name, "")

    def test_only_what_is_chosen(self) -> None:
        us, _de = new(Proxy, country="US", tags="a b"), new(Proxy, country="DE", tags="a b")
        assert [row["id"] for row in rows_of(run("export", "--where", "country=US", "--tag", "a").out)] == [
            str(us.pk)
        ]

    @pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r"])
    def test_holds_no_formula(self, begin: str) -> None:
        new(Proxy, notes=f"{begin}cmd|'/c calc'!A0", weight=3)
        (row,) = rows_of(run("export").out)
        assert row["notes"].startswith(f"'{begin}")
        assert row["weight"] == "3"


def test_json_is_one_array_and_lines_are_objects() -> None:
    for proxy in several(Proxy, 3):
        assert proxy.pk
    array = run("export", "--format", "json").json
    lines = [json.loads(line) for line in run("export", "--format", "lines").out.splitlines()]
    assert [one["id"] for one in array] == [one["id"] for one in lines] == sorted(one["id"] for one in array)
    assert len(array) == 3
    assert array[0]["in_service"] is True


def test_nothing_to_export_is_said() -> None:
    assert run("export", "--format", "json").json == []
    assert run("export").err == "nothing to export\n"
    assert run("export").code == 1


def test_never_more_than_a_chunk_is_read_and_none_is_left_out(
    monkeypatch: pytest.MonkeyPatch, statements: list[Any]
) -> None:
    monkeypatch.setattr(export, "CHUNK", 3)
    expected = sorted(one.pk for one in several(Proxy, 7))
    statements.clear()
    assert [one["id"] for one in run("export", "--format", "json").json] == expected
    assert len(statements) == 3


class TestSecrets:
    def test_leave_by_no_other_way(self, tmp_path: Path) -> None:
        proxy = new(Proxy, password=CANARY, username="joe")
        hold(proxy)
        file = tmp_path / "all.csv"
        for form in ("csv", "json", "lines"):
            assert CANARY not in run("export", "--format", form).all
            assert CANARY not in run("export", "--events", "--format", form).all
        run("export", "--output", file)
        assert CANARY not in file.read_text()
        assert "sealed:" not in file.read_text()

    def test_go_to_a_new_file_that_only_its_owner_can_read(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        new(Proxy, password=CANARY)
        file = tmp_path / "backup.csv"
        done = run("export", "--with-secrets", "--output", file, "--yes")
        assert done.out == f"1 written to {file}\n"
        assert CANARY in file.read_text()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert CANARY not in done.all + caplog.text
        assert "wrote 1 proxies with their passwords" in caplog.text

    def test_never_over_a_file_or_a_link(self, tmp_path: Path) -> None:
        new(Proxy, password=CANARY)
        public, link = tmp_path / "public", tmp_path / "link"
        link.symlink_to(public)
        for file in (public, link):
            public.touch() if file is public else public.unlink()
            refused = run("export", "--with-secrets", "--output", file, "--yes")
            assert refused.err == f"{file} exists; choose another name\n"
            assert refused.code == 1
        assert not public.exists()

    def test_are_asked_for(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.stdin", None)
        new(Proxy, password=CANARY)
        refused = run("export", "--with-secrets", "--output", tmp_path / "backup.csv")
        assert "pass --yes" in refused.err
        assert not (tmp_path / "backup.csv").exists()

    def test_that_no_key_decrypts_name_the_row(self, tmp_path: Path, settings: Any) -> None:
        row = new(Proxy, password=CANARY)
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "SECRET_KEYS": [Fernet.generate_key().decode()]}
        refused = run("export", "--with-secrets", "--output", tmp_path / "backup.csv", "--yes")
        assert refused.err.startswith(f"resourcepool.Proxy {row.pk}: no key in ")
        assert refused.code == 1

    def test_come_back_as_they_were(self, tmp_path: Path) -> None:
        odd = {
            "username": "=joe",
            "password": f"+{CANARY}\",'",
            "notes": "=1+1;=2\r\n+491701234567\t=3",
            "tags": "eu fast",
            "weight": 7,
        }
        before = [columns(one) for one in (new(Proxy, country="US", **odd), new(Proxy, scheme="socks5"))]
        file = tmp_path / "backup.csv"
        run("export", "--with-secrets", "--output", file, "--yes")
        Proxy.objects.all().delete()
        out = io.StringIO()
        call_command("resourcepool_import", str(file), stdout=out)
        assert "2 new" in out.getvalue()
        after = [columns(one) for one in Proxy.objects.order_by("pk")]
        for old, new_one in zip(before, after, strict=True):
            for name in ("scheme", "host", "port", "username", "country", "tags", "weight"):
                assert new_one[name] == old[name]
        first = Proxy.objects.order_by("pk")[0]
        assert first.password == odd["password"]
        assert first.notes == "=1+1;=2\n+491701234567\t=3"


def test_what_is_copied_from_a_list_into_an_import_is_the_same_phone_number(tmp_path: Path) -> None:
    before = new(Proxy, username="+491701234567", tags="eu")
    names = ("scheme", "host", "port", "username", "tags")
    (row,) = rows_of(run("export").out)
    file = tmp_path / "again.csv"
    file.write_text("\n".join([",".join(names), ",".join(row[name] for name in names)]))
    assert "1 unchanged" in run("import", file).out
    assert Proxy.objects.get() == before


def test_a_file_that_was_not_finished_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: Any, **more: Any) -> Iterator[str]:
        yield "half of it"
        raise KeyboardInterrupt

    monkeypatch.setitem(command.FORMATS, "csv", interrupted)
    new(Proxy)
    stopped = run("export", "--output", tmp_path / "half.csv")
    assert (stopped.err, stopped.code) == ("interrupted; unfinished files are removed\n", 130)
    assert list(tmp_path.iterdir()) == []


class TestEvents:
    def test_of_a_pool_and_a_span(self) -> None:
        proxy = new(Proxy)
        with Proxy.pool.lease(holder="=crawler"):
            pass
        assert told(proxy) == ["released"]
        new_one = Event.objects.get()
        old = {"at": new_one.at.replace(year=2020), "pool": new_one.pool, "row": new_one.row}
        Event.objects.create(what="acquired", **old)
        Event.objects.create(at=new_one.at, what="released", pool="testapp.device", row="1")
        (line,) = rows_of(run("export", "proxy", "--events", "--since", "1h").out)
        assert (line["what"], line["row"], line["holder"]) == ("released", str(proxy.pk), "'=crawler")
        assert line["is_whole"] == "True"
        assert float(line["seconds"]) > 0
        assert run("export", "proxy", "--events", "--since", "3650d").out.count("\n") == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nope"], "pool='nope' is not allowed: it must be one of"),
        (["--with-secrets"], "--with-secrets requires --output FILE"),
        (
            ["testapp.Device", "--with-secrets", "--output", "x"],
            "--with-secrets is for resourcepool.Proxy only",
        ),
        (["--with-secrets", "--output", "x", "--format", "json"], "--with-secrets requires --format csv"),
        (["--since", "2h"], "--since requires --events"),
        (["--events", "--tag", "eu"], "--events cannot be combined with"),
        (["--events", "--since", "soon"], "is not a duration"),
        (["--output", "/nowhere/at/all.csv"], "/nowhere/at/all.csv: No such file or directory"),
    ],
)
def test_bad_input_is_refused(words: list[str], said: str) -> None:
    refused = run("export", *words)
    assert said in refused.err
    assert refused.code == 1
    assert refused.out == ""
