"""The harness itself: servers leave nothing behind, children use the test's own database, pins are complete."""

import contextlib
import gc
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from packaging.requirements import Requirement

from resourcepool.models import SemaphorePermit
from tests import case_sample, everywhere, quick
from tests.app.rows import new, steal
from tests.run import ALONE, AT_ONCE, of_everything, phases
from tests.servers import MariaDB, MySQL, PostgreSQL, Server, ServerMissing, fetched
from tests.spawned import ROOT, Spawner

PRINTS_SECRETS = """
from django.conf import settings
from django.db import connection

with connection.cursor() as cursor:
    print(settings.SECRET_KEY, settings.RESOURCEPOOL, cursor.execute("PRAGMA journal_mode").fetchone())
"""

# Each server is tried in the run on its own kind of database, which has the driver.
SERVERS = [
    pytest.param(MariaDB, marks=pytest.mark.only("mariadb")),
    pytest.param(MySQL, marks=pytest.mark.only("oracle_mysql")),
    pytest.param(PostgreSQL, marks=pytest.mark.only("postgresql")),
]


@pytest.mark.parametrize("kind", SERVERS)
def test_server_keeps_its_data_until_it_leaves_without_a_trace(kind: type[Server]) -> None:
    with kind(options=["--max-connections=17"]) as server:
        query(server, "CREATE TABLE noted (number int PRIMARY KEY)")
        query(server, "INSERT INTO noted VALUES (7)")
        for again in (server.restart, server.kill, server.start):
            again()
        assert query(server, "SELECT number FROM noted") == 7
    assert not server.folder.exists()
    assert not server.answers()


@pytest.mark.parametrize("kind", SERVERS[:2])
def test_server_in_another_time_zone(kind: type[MariaDB | MySQL]) -> None:
    with kind(timezone="+05:00") as server:
        assert query(server, "SELECT TIMESTAMPDIFF(HOUR, UTC_TIMESTAMP(), NOW())") == 5


def test_a_server_that_could_not_be_fetched_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetched, "SERVERS", tmp_path)
    with pytest.raises(ServerMissing, match="bootstrap test does that"):
        fetched.tree("mysql")
    (tmp_path / "mysql.why").write_text("apt-get update failed: no network\n")
    with pytest.raises(ServerMissing, match=r"^apt-get update failed: no network$"):
        fetched.tree("mysql")


@pytest.mark.only("sqlite")
def test_what_cannot_be_fetched_leaves_its_reason_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    script = shutil.copy(ROOT / ".ci/fetch_server", tmp_path / ".ci")
    apt = tmp_path / "apt-get"
    apt.write_text("#!/bin/sh\necho 'E: no network here'\nexit 100\n")
    apt.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", script, "mysql", "mysql-server-core-*"], env={"PATH": path}, capture_output=True, check=False
    )
    assert done.returncode == 1
    assert [left.name for left in (tmp_path / ".servers").iterdir()] == ["mysql.why"]
    assert "mysql is left out" in done.stderr.decode()


@pytest.mark.parametrize("kind", SERVERS)
def test_server_does_not_outlive_a_killed_owner(kind: type[Server]) -> None:
    command = [sys.executable, "-m", "tests.servers", kind.name.lower()]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stderr
        match = re.search(r"in (/\S+);", owner.stderr.readline())
        assert match
        owner.kill()
    deadline = time.monotonic() + 20
    while Path(match[1]).exists():
        assert time.monotonic() < deadline, "the guardian has not cleaned up"
        time.sleep(0.1)


def test_a_failed_child_shows_its_traceback(spawn: Spawner) -> None:
    with pytest.raises(AssertionError, match="no such group"):
        spawn(fail).succeed()


@pytest.mark.only("sqlite")
def test_sqlite_is_a_file_in_wal_mode_that_survives_a_power_cut(transactional_db: None) -> None:
    with connection.cursor() as cursor:
        assert cursor.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert cursor.execute("PRAGMA synchronous").fetchone() == (2,)
    assert Path(connection.settings_dict["NAME"]).is_file()


@pytest.mark.only("sqlite")
def test_processes_that_start_at_once_agree_on_the_secrets_and_the_mode_of_a_new_file(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "VAR_DIR": str(tmp_path / "var"),
        "DATABASE_URL": f"sqlite:///{tmp_path}/new.sqlite3",
    }
    # As migrate leaves it: of those who switch a new file to WAL at the same moment, SQLite refuses some.
    with contextlib.closing(sqlite3.connect(tmp_path / "new.sqlite3")) as made:
        made.execute("PRAGMA journal_mode=WAL")
    children = [
        subprocess.Popen(
            [sys.executable, "-c", PRINTS_SECRETS], env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    shown = [child.communicate(timeout=30)[0] for child in children]
    assert all(child.returncode == 0 for child in children)
    assert len(set(shown)) == 1
    files = sorted((tmp_path / "var").iterdir())
    assert [file.name for file in files] == ["resourcepool_key", "secret_key"]
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in files)


@pytest.mark.only("sqlite")
def test_everything_that_is_installed_is_pinned() -> None:
    pins = re.findall(r"^([\w.-]+)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert needed("django-resourcepool[dev,mysql,postgres,celery,rest,demo]") <= {
        canonical(name) for name in pins
    }


def query(server: Server, statement: str) -> object:
    connection = server.connect()
    cursor = connection.cursor()
    if isinstance(server, MariaDB | MySQL):
        cursor.execute("USE resourcepool")
    cursor.execute(statement)
    row = cursor.fetchone() if cursor.description else None
    connection.commit()
    connection.close()
    return row[0] if row else None


def fail() -> None:
    raise LookupError("no such group")


def needed(requirement: str) -> set[str]:
    """Return the names of all that a requirement brings with it, as far as it is installed here."""
    found: dict[str, Requirement] = {}
    wishes = [Requirement(requirement)]
    while wishes:
        wish = wishes.pop()
        try:
            lines = metadata.requires(wish.name) or []
        except metadata.PackageNotFoundError:
            continue
        for child in map(Requirement, lines):
            extras = (*wish.extras, "")
            if child.marker is None or any(child.marker.evaluate({"extra": extra}) for extra in extras):
                if str(child) not in found:
                    wishes.append(child)
                found[str(child)] = child
    return {canonical(child.name) for child in found.values()}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_what_depends_on_the_database_is_tested_on_each_and_the_rest_once() -> None:
    assert "everywhere and not alone" in phases("mariadb", ["-k", "x"])[0]
    assert "tests/db/dialect" in phases("mariadb", ["-k", "x"])[0]
    assert phases("postgresql", ["tests/locale"])[0] == [
        *AT_ONCE["postgresql"],
        "-m",
        "not alone",
        "tests/locale",
    ]
    assert phases("mariadb", ["tests/browser"])[1] == [*ALONE, "-m", "alone", "tests/browser"]
    assert "tests/browser/test_lists.py" in phases("mariadb", [])[1]
    assert "tests/db/dialect" not in phases("mariadb", [])[1]
    assert len(phases("sqlite", [])) == len(phases("postgresql", [])) == 1
    assert phases("mariadb", ["-m", "alone"]) == [[*AT_ONCE["mariadb"], "-m", "alone"]]


def test_garbage_is_collected_while_tests_run_though_not_while_they_are_collected() -> None:
    assert gc.isenabled()
    assert gc.get_freeze_count()


def test_every_test_that_is_listed_is_there() -> None:
    listed = (*everywhere.EVERYWHERE, *everywhere.IN_TURN)
    for entry in (*listed, *everywhere.SELDOM, *quick.QUICK, *quick.LEFT_OUT):
        path, *names = entry.split("::")
        assert Path(path).exists(), entry
        assert all(re.search(rf"(def|class) {name}\b", Path(path).read_text()) for name in names), entry
    assert len(set(listed)) == len(listed)


def test_what_one_server_tests_in_turn_is_tested_on_one_of_them_each_time_and_on_either_in_time() -> None:
    names = [f"tests/status/test_grid.py::test_a[{number}]" for number in range(100)]

    def chosen(server: str, turn: int | None) -> list[str]:
        return [name for name in names if everywhere.has_its_turn(name, server, turn)]

    def of_all(turn: int) -> list[str]:
        return [name for server in everywhere.SERVERS for name in chosen(server, turn)]

    for turn in range(20):
        assert sorted(of_all(turn)) == sorted(names)
    for server in everywhere.SERVERS:
        assert {name for turn in range(40) for name in chosen(server, turn)} == set(names)
        assert chosen(server, None) == names
    names = [f"{everywhere.SELDOM[0]}[{number}]" for number in range(100)]
    for turn in range(20):
        assert len(set(of_all(turn))) == len(of_all(turn)) < len(names)
    for server in everywhere.SERVERS:
        assert {name for turn in range(80) for name in chosen(server, turn)} == set(names)


def test_what_is_for_mariadb_and_mysql_alone_is_tested_on_one_of_these_two_each_time() -> None:
    two = everywhere.NAMES["mysql"]
    for turn in range(20):
        assert (
            sum(everywhere.has_its_turn("tests/jobs/test_a.py::test_a", name, turn, two) for name in two) == 1
        )
        assert not everywhere.has_its_turn("tests/jobs/test_a.py::test_a", "postgresql", turn, two)


def test_which_tests_a_run_of_everything_leaves_out_is_the_same_for_all_of_its_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TESTS_TURN", "7")
    assert of_everything() == of_everything()
    assert of_everything()["TESTS_TURN"] == "7"
    monkeypatch.delenv("TESTS_TURN")
    drawn = of_everything()
    assert of_everything() == drawn
    assert os.environ["TESTS_TURN"] == drawn["TESTS_TURN"]


def test_of_tests_that_are_alike_another_part_is_left_out_each_time_and_none_for_ever() -> None:
    for entry, of in case_sample.IN_PART.items():
        path, _, name = entry.partition("::")
        assert Path(path).exists(), entry
        assert not name or re.search(rf"(def|class) {name}\b", Path(path).read_text()), entry
        inside = entry if name else f"{path}::test_a" if Path(path).is_file() else f"{path}/test_a.py::test_a"
        nodeids = [f"{inside}[{number}]" for number in range(40)]
        tried = [
            set(nodeids) - case_sample.left_out(["tests/x.py::test_b", *nodeids], turn) for turn in range(of)
        ]
        assert sorted(nodeid for each in tried for nodeid in each) == sorted(nodeids)
        assert all(tried)


@pytest.mark.parametrize(
    ("nodeid", "vendors", "is_everywhere", "is_never_run"),
    [
        ("tests/db/dialect/test_clock.py::test_a", [], True, False),
        ("tests/dialect_of_mine/test_clock.py::test_a", [], False, False),
        ("tests/canary/test_pages.py::test_a_page_shows_none[x]", [], True, False),
        ("tests/canary/test_pages.py::test_a_page_shows_none_more", [], False, False),
        ("tests/browser/test_lists.py::test_a", ["mysql"], True, False),
        ("tests/locale/test_pages.py::test_a", ["sqlite", "mysql"], False, False),
        ("tests/locale/test_pages.py::test_a", ["mysql", "postgresql"], True, True),
    ],
)
def test_a_test_for_servers_that_would_never_run_is_noticed(
    nodeid: str, vendors: list[str], is_everywhere: bool, is_never_run: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(everywhere, "TURN", None)
    marks = [pytest.mark.only(*vendors).mark] if vendors else []
    item: Any = SimpleNamespace(nodeid=nodeid, iter_markers=lambda name: marks)
    assert everywhere.is_everywhere(item) == is_everywhere
    assert everywhere.is_never_run(item) == is_never_run


@pytest.mark.django_db
def test_a_row_that_nobody_can_take_is_not_waited_for() -> None:
    row = new(SemaphorePermit, in_service=False)
    with pytest.raises(AssertionError, match="cannot be claimed"):
        steal(row)
    assert steal(new(SemaphorePermit)).holder == "thief"
