"""``manage.py resourcepool_doctor``, as an operator and as a program sees it."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings

from resourcepool.db.dialect import DbLater
from resourcepool.models import Proxy, Ticket
from tests.aliases import alias
from tests.app.rows import expire, granted, new, several
from tests.committed import *  # noqa: F403 (fixtures)
from tests.management.command_runner import run

KEYS = {"safe", "findings", "databases"}
DATABASE_KEYS = {
    "database",
    "server",
    "findings",
    "passed",
    "distance",
    "commits",
    "statements",
    "leases",
    "tickets",
}
FINDING_KEYS = {"level", "id", "about", "message", "hint", "link", "code", "is_unsafe_warning"}


@pytest.fixture(autouse=True)
def _on_committed_rows(transactional_db: None) -> None:
    pass


def examined(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code, and what ``--json`` says about the only database."""
    said = run("doctor", "--json", *arguments)
    (database,) = said.json["databases"]
    return said.code, database


def levels(database: dict[str, Any]) -> dict[str, str]:
    return {one["id"].partition(".")[2]: one["level"] for one in database["findings"]}


def test_a_safe_database_ends_with_code_0_and_says_so_last() -> None:
    said = run("doctor")
    text = said.out
    assert (said.code, text.splitlines()[-1][:5]) == (0, "Safe.")
    assert "UNSAFE" not in text
    assert "commit: median" in text
    assert "resourcepool.Proxy: indexes used, no sorting: find free rows" in text
    assert not Ticket.objects.exists()


def test_json_has_the_documented_keys() -> None:
    said = run("doctor", "--json").json
    (database,) = said["databases"]
    assert set(said) == KEYS
    assert set(database) == DATABASE_KEYS
    assert all(set(finding) == FINDING_KEYS for finding in database["findings"])
    assert all(set(one) == {"model", "name", "uses", "problem"} for one in database["statements"])
    assert all(set(one) == {"model", "live", "expired"} for one in database["leases"])


def test_it_measures() -> None:
    code, found = examined()
    assert code == 0
    assert found["database"] == "default"
    assert found["commits"]["count"] >= 1
    assert 0 < found["commits"]["median"] <= found["commits"]["p99"]
    assert found["distance"]["round_trip"] > 0
    assert found["distance"]["offset_error"] > 0


def test_leases_waiters_and_what_the_dead_left_are_counted() -> None:
    first, second, _ = several(Proxy, 3)
    granted(first)
    granted(second)
    expire(second)
    new(Ticket, fence=1, holder="waits", busy_before=DbLater(60))
    new(Ticket, fence=1, holder="died just now", busy_before=DbLater(-1))
    new(Ticket, fence=1, holder="died long ago", busy_before=DbLater(-3_600))
    _, found = examined()
    assert {"model": "resourcepool.Proxy", "live": 1, "expired": 1} in found["leases"]
    assert found["tickets"] == {"live": 1, "orphaned": 1}


def test_many_tickets_of_the_dead_are_told() -> None:
    Ticket.objects.bulk_create(
        Ticket(pool="resourcepool.proxy", asked_at="2000-01-01T00:00:00Z") for _ in range(1_000)
    )
    code, found = examined()
    assert (code, levels(found)["W024"]) == (0, "advice")


def test_without_the_right_to_write_no_write_says_what_can_be_said() -> None:
    options = {
        "mysql": {"init_command": "SET innodb_lock_wait_timeout=5; SET SESSION TRANSACTION READ ONLY"},
        "postgresql": {"options": "-c lock_timeout=5s -c default_transaction_read_only=on"},
        "sqlite": {"init_command": "PRAGMA journal_mode=WAL; PRAGMA query_only=ON"},
    }[connection.vendor]
    with alias("strange", OPTIONS=options):
        _, found = examined("--no-write")
        assert levels(found).get("W022") != "unsafe"
        assert found["commits"] is None
        assert found["leases"]
        _, found = examined()
        assert levels(found)["W022"] == "unsafe"


@contextlib.contextmanager
def ordinary_user() -> Iterator[dict[str, str]]:
    """Make a user who may read and write rows, and nothing else."""
    database = connection.settings_dict["NAME"]
    name, rows = f"ordinary_{database}", "GRANT SELECT, INSERT, UPDATE, DELETE ON"
    statements = {
        "mysql": (
            f"CREATE USER {name}@'127.0.0.1' IDENTIFIED BY 's3cret'",
            f"{rows} `{database}`.* TO {name}@'127.0.0.1'",
            f"DROP USER {name}@'127.0.0.1'",
        ),
        "postgresql": (
            f"CREATE ROLE {name} LOGIN PASSWORD 's3cret'",
            f"{rows} ALL TABLES IN SCHEMA public TO {name}; GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {name}",
            f"DROP OWNED BY {name}; DROP ROLE {name}",
        ),
    }
    create, grant, drop = statements[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(create)
        try:
            cursor.execute(grant)
            yield {"USER": name, "PASSWORD": "s3cret"}
        finally:
            cursor.execute(drop)


@pytest.mark.only("mysql", "postgresql")
def test_an_ordinary_user_is_enough() -> None:
    with ordinary_user() as user, alias("strange", **user):
        code, found = examined()
    assert (code, levels(found)) == (0, {"W021": "advice"})
    assert found["commits"]
    assert found["statements"]


def test_a_database_that_does_not_answer_is_unsafe_and_no_password_is_said(tmp_path: Path) -> None:
    name = str(tmp_path / "no" / "db") if connection.vendor == "sqlite" else "resourcepool"
    with alias("strange", NAME=name, HOST="127.0.0.1", PORT="1", PASSWORD="s3cret"):
        text, as_json = run("doctor"), run("doctor", "--json")
    assert text.code == as_json.code == 1
    assert "no answer" in text.out
    assert "s3cret" not in text.all + as_json.all
    (database,) = as_json.json["databases"]
    assert levels(database) == {"W020": "unsafe"}
    assert database["commits"] is database["statements"] is None


@pytest.mark.only("mysql", "postgresql")
def test_a_database_that_hangs_does_not_hang_the_doctor() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = str(silent.getsockname()[1])
        with alias("strange", HOST="127.0.0.1", PORT=port):
            code, found = examined()
    assert (code, levels(found)) == (1, {"W020": "unsafe"})


def test_before_migrate_it_says_what_is_missing(tmp_path: Path) -> None:
    name = {"mysql": "mysql", "postgresql": "postgres", "sqlite": str(tmp_path / "db")}[connection.vendor]
    with alias("strange", NAME=name):
        code, found = examined()
    assert code == 1
    missing = {one["about"] for one in found["findings"] if one["level"] == "unsafe"}
    assert {"resourcepool.Proxy", "resourcepool.Ticket"} <= missing
    assert found["commits"] is None


def test_a_table_that_the_project_makes_itself_may_be_missing() -> None:
    _, found = examined()
    (ghost,) = (one for one in found["findings"] if one["id"] == "resourcepool.W021")
    assert (ghost["about"], ghost["level"]) == ("testapp.Ghost", "advice")


def test_what_the_settings_get_wrong_is_told_too() -> None:
    with override_settings(RESOURCEPOOL={"TLL": 3}):
        said = run("doctor", "--json")
    (finding,) = said.json["findings"]
    assert said.code == 1
    assert (finding["id"], finding["level"]) == ("resourcepool.E001", "unsafe")


def test_a_silenced_check_does_not_make_it_unsafe() -> None:
    mirror = {"MIRROR": "default"}
    with alias("strange", TEST=mirror):
        assert examined("--no-write")[0] == 1
        with override_settings(SILENCED_SYSTEM_CHECKS=["resourcepool.W010"]):
            code, found = examined("--no-write")
            assert "silenced" in run("doctor", "--no-write").out
    assert (code, levels(found)["W010"]) == (0, "silenced")


def test_the_session_is_judged_as_the_project_set_it_up() -> None:
    options: dict[str, Any] = {
        "mysql": {"init_command": "SET innodb_lock_wait_timeout=50"},
        "postgresql": {"options": "-c lock_timeout=50s"},
        "sqlite": {"timeout": 1},
    }[connection.vendor]
    with alias("strange", OPTIONS=options):
        _, found = examined("--no-write")
    assert {"W012", "W016"} & set(levels(found))


def test_each_database_with_leases_is_examined_or_the_one_asked_for() -> None:
    class Split:
        def db_for_write(self, model: type, **hints: Any) -> str:
            return "strange" if model is Proxy else "default"

    with alias("strange"), override_settings(DATABASE_ROUTERS=[Split()]):
        both = run("doctor", "--json").json["databases"]
        _, one = examined("--database", "strange")
    assert [database["database"] for database in both] == ["default", "strange"]
    assert {lease["model"] for lease in one["leases"]} == {"resourcepool.Proxy"}


def test_a_database_that_is_unknown_or_without_leases_is_refused() -> None:
    refused = run("doctor", "--database", "nowhere")
    assert (refused.err, refused.code) == ("unknown database 'nowhere'; DATABASES has: default\n", 2)
    with alias("strange", leased=False):
        assert "database 'strange' holds no leases" in run("doctor", "--database", "strange").err
