"""``check --database``: each problem is created on a real database, and must be reported."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import Error, run_checks
from django.core.management import call_command
from django.db import connection, connections, models, transaction
from django.test import override_settings
from django.test.utils import isolate_apps

from resourcepool.documentation import documented
from resourcepool.models import AbstractLease, Event
from resourcepool.safety.diagnosis import keys_of
from tests.aliases import alias, codes, messages
from tests.app.models import Bare, Device, Poll
from tests.committed import *  # noqa: F403 (fixtures)

MULTI_STATEMENTS = 1 << 16  # of the MySQL protocol
LOCK = "-c lock_timeout=5s"
IDLE = "-c idle_in_transaction_session_timeout=60s"  # of PostgreSQL


@pytest.fixture(autouse=True)
def _on_committed_rows(transactional_db: None) -> None:
    pass


def execute(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@contextlib.contextmanager
def changed(there: str, back: str) -> Iterator[None]:
    execute(there)
    try:
        yield
    finally:
        execute(back)


def test_the_test_databases_are_safe() -> None:
    assert messages("default") == []


def test_a_check_does_not_disturb_a_transaction() -> None:
    with transaction.atomic():
        assert messages("default") == []
        assert not Bare.objects.exists()


def test_no_database_is_queried_without_the_option() -> None:
    with alias("strange", TEST={"MIRROR": "default"}):
        assert run_checks(tags=["resourcepool"]) == []
        assert run_checks(tags=["resourcepool"], databases=[]) == []


def test_a_database_without_leases_is_not_checked() -> None:
    with alias("strange", leased=False, TEST={"MIRROR": "default"}):
        assert messages("strange") == []


def test_without_autocommit_a_claim_is_not_committed() -> None:
    with alias("strange", AUTOCOMMIT=False):
        assert codes("strange") == {"E010"}


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "America/New_York"])
def test_times_are_read_in_another_time_zone(zone: str) -> None:
    expected = set() if connection.features.supports_timezones else {"E013"}
    with alias("strange", TIME_ZONE=zone):
        assert codes("strange") == expected
    with alias("strange", TIME_ZONE="UTC"):
        assert codes("strange") == set()


def test_a_message_has_the_place_the_problem_the_fix_and_a_link() -> None:
    with alias("strange", TEST={"MIRROR": "default"}):
        (message,) = messages("strange")
    assert message.obj == "database 'strange'"
    assert message.msg.startswith(
        "Leased models are written here, but its TEST setting declares it a mirror of default"
    )
    assert "DATABASE_ROUTERS" in message.hint
    assert message.hint.endswith(f"({documented('reference/checks', 'w010')})")


@pytest.mark.only("mysql")
class TestMySQL:
    @pytest.mark.parametrize(
        ("options", "code"),
        [
            ({"isolation_level": "repeatable read"}, "W003"),
            ({"isolation_level": "serializable"}, "W003"),
            ({"isolation_level": "read uncommitted"}, "E009"),
            ({"client_flag": MULTI_STATEMENTS}, "E005"),
            ({"init_command": "SET wait_timeout=600 /*M!, idle_transaction_timeout=60 */"}, "W012"),
            ({"init_command": "SET innodb_lock_wait_timeout=5"}, "W043"),
            ({"connect_timeout": 0}, "W042"),
            ({"read_timeout": 0}, "W042"),
            ({"charset": "latin1"}, "E018"),
            ({"charset": "utf8mb3"}, "E018"),
        ],
    )
    def test_options_that_break_leases_or_slow_them(self, options: dict[str, Any], code: str) -> None:
        with alias("strange", OPTIONS=options):
            assert codes("strange") == {code}

    def test_a_client_flag_with_found_rows_is_accepted(self) -> None:
        with alias("strange", OPTIONS={"client_flag": MULTI_STATEMENTS | 2}):
            assert codes("strange") == set()

    @pytest.mark.parametrize("engine", ["MyISAM", pytest.param("Aria", marks=pytest.mark.only("mariadb"))])
    def test_a_table_without_transactions_and_its_fix(self, engine: str) -> None:
        table = Bare._meta.db_table
        with changed(f"ALTER TABLE {table} ENGINE={engine}", f"ALTER TABLE {table} ENGINE=InnoDB"):
            (message,) = messages("default")
            assert (message.id, message.obj) == ("resourcepool.E006", "testapp.Bare")
            assert engine in message.msg
            execute(message.hint.partition(";")[0])
            assert messages("default") == []

    @pytest.mark.parametrize(("model", "name"), [(Device, "name"), (Poll, "name")])
    def test_a_key_that_ignores_case_and_its_fix(self, model: Any, name: str) -> None:
        change = f"ALTER TABLE `{model._meta.db_table}` MODIFY {name} VARCHAR(50) COLLATE utf8mb4_"
        with changed(f"{change}general_ci NOT NULL", f"{change}bin NOT NULL"):
            (message,) = messages("default")
            assert message.id == "resourcepool.W011"
            assert message.obj == f"{model._meta.label}.{name}"
            assert "utf8mb4_general_ci" in message.msg
            execute(message.hint[message.hint.index("ALTER TABLE") :].partition(";")[0])
            assert messages("default") == []

    def test_columns_without_all_characters_and_their_fix(self) -> None:
        kept = "MODIFY name VARCHAR(50) CHARACTER SET {0} COLLATE {0}_bin NOT NULL"
        table = (
            f"ALTER TABLE `{Device._meta.db_table}` MODIFY notes LONGTEXT CHARACTER SET {{0}} NOT NULL, {kept}"
        )
        with changed(table.format("latin1"), table.format("utf8mb4")):
            (message,) = messages("default")
            assert (message.id, message.obj) == ("resourcepool.W039", "testapp.Device")
            assert "only the characters of latin1 (notes, name)" in message.msg
            execute(message.hint.partition(";")[0])
            assert messages("default") == []

    def test_columns_of_other_tables_are_checked_too(self) -> None:
        table = f"ALTER TABLE {Event._meta.db_table} MODIFY reason VARCHAR(500) CHARACTER SET {{}} NOT NULL"
        with changed(table.format("utf8mb3"), table.format("utf8mb4")):
            (message,) = messages("default")
        assert (message.id, message.obj) == ("resourcepool.W039", "resourcepool.Event")


@pytest.mark.only("postgresql")
class TestPostgreSQL:
    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            (f"{LOCK} {IDLE} -c default_transaction_isolation=serializable", {"W003"}),
            (f"{LOCK} {IDLE} -c synchronous_commit=off", {"W007"}),
            (f"{LOCK} {IDLE} -c default_transaction_read_only=on", {"E007"}),
            (LOCK, {"W043"}),  # transactions may idle for ever
            (IDLE, {"W012"}),  # so may lock waits
            (f"{IDLE} -c lock_timeout=60s", {"W012"}),
            (f"{IDLE} -c statement_timeout=5s", set()),  # which limits lock waits, too
        ],
    )
    def test_session_settings_that_break_leases_or_slow_them(self, options: str, expected: set[str]) -> None:
        with alias("strange", OPTIONS={"options": options}):
            assert codes("strange") == expected

    @pytest.mark.parametrize("name", ["connect_timeout", "tcp_user_timeout", "keepalives_idle"])
    def test_a_connection_without_a_limit(self, name: str) -> None:
        with alias("strange", OPTIONS={name: None}):
            assert codes("strange") == {"W042"}

    def test_the_isolation_level_that_django_sets(self) -> None:
        from django.db.backends.postgresql.psycopg_any import IsolationLevel

        with alias("strange", OPTIONS={"isolation_level": IsolationLevel.REPEATABLE_READ}):
            assert codes("strange") == {"W003"}

    def test_a_sign_of_a_transaction_pooler(self) -> None:
        with alias("strange", DISABLE_SERVER_SIDE_CURSORS=True):
            assert codes("strange") == {"W013"}

    def test_a_transaction_pooler_is_detected_by_its_behaviour(self, monkeypatch: pytest.MonkeyPatch) -> None:
        place = "resourcepool.db.inspection.postgresql"
        with alias("strange", OPTIONS={"options": f"{LOCK} {IDLE}"}):
            monkeypatch.setattr(f"{place}.backend_pid", lambda _: 1)  # as behind a pooler
            assert codes("strange") == set()
            monkeypatch.setattr(f"{place}.private_connection", lambda alias, **_: connections[alias])
            monkeypatch.setattr(f"{place}.discard", lambda _: None)
            (message,) = messages("strange")
        assert message.id == "resourcepool.W040"
        for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
            assert name in message.msg

    def test_a_key_that_ignores_case(self) -> None:
        folding = "CREATE COLLATION folding (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
        change = f"ALTER TABLE {Device._meta.db_table} ALTER name TYPE varchar(50) COLLATE "
        with changed(folding, "DROP COLLATION folding"), changed(f"{change}folding", f'{change}"default"'):
            (message,) = messages("default")
        assert (message.id, message.obj) == ("resourcepool.W011", "testapp.Device.name")
        assert "ALTER TABLE" not in message.hint


@pytest.mark.only("sqlite")
class TestSQLite:
    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"transaction_mode": None}, {"W014"}),
            ({"transaction_mode": "EXCLUSIVE"}, set()),
            ({"init_command": "PRAGMA synchronous=FULL"}, {"W015"}),
            ({"timeout": 1}, {"W016"}),
            ({"init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL"}, {"W017"}),
        ],
    )
    def test_options_that_cause_errors_or_lost_commits(
        self, options: dict[str, Any], expected: set[str], tmp_path: Path
    ) -> None:
        with alias("strange", NAME=str(tmp_path / "db"), OPTIONS=options):
            assert codes("strange") == expected

    def test_in_memory(self) -> None:
        with alias("strange", NAME=":memory:"):
            assert codes("strange") == {"W018"}

    def test_a_key_that_ignores_case(self, tmp_path: Path) -> None:

        with alias("strange", NAME=str(tmp_path / "db")), connections["strange"].cursor() as cursor:
            cursor.execute(
                f'CREATE TABLE {Device._meta.db_table} ("name" varchar(50) NOT NULL COLLATE "NOCASE")'
            )
            cursor.execute("CREATE TABLE resourcepool_ticket (pool varchar(50))")
            (message,) = messages("strange")
        assert (message.id, message.obj) == ("resourcepool.W011", "testapp.Device.name")


class TestRouters:
    def test_a_model_that_is_written_to_different_databases(self) -> None:
        turns = iter(["default", "strange"] * 1_000)

        class Undecided:
            def db_for_write(self, model: type, **hints: Any) -> str | None:
                return next(turns) if model is Bare else None

        with alias("strange"), override_settings(DATABASE_ROUTERS=[Undecided()]):
            (message,) = run_checks(tags=["resourcepool"])
            assert codes("default", "strange") == {"E008"}
        assert (message.id, message.obj) == ("resourcepool.E008", "testapp.Bare")
        assert isinstance(message, Error)
        assert "default, strange" in message.msg

    def test_resources_without_a_table_for_their_waiters(self) -> None:
        away = "ALTER TABLE resourcepool_ticket RENAME TO nowhere"
        with changed(away, "ALTER TABLE nowhere RENAME TO resourcepool_ticket"):
            (message,) = messages("default")
        assert (message.id, message.obj) == ("resourcepool.W019", "resourcepool.Ticket")
        assert "manage.py migrate resourcepool --database=default" in message.hint

    def test_missing_tables_before_the_first_migrate_are_accepted(self, tmp_path: Path) -> None:
        with alias("strange", NAME=empty(tmp_path)):
            assert codes("strange") <= {"W038"}, "MariaDB's own database has a character set of its own"


def empty(folder: Path) -> str:
    """Return the name of a database without tables of this package."""
    return {"mysql": "mysql", "postgresql": "postgres", "sqlite": str(folder / "empty")}[connection.vendor]


def test_a_database_that_does_not_answer_is_a_warning_without_a_password(tmp_path: Path) -> None:
    name = str(tmp_path / "no" / "db") if connection.vendor == "sqlite" else "resourcepool"
    with alias("strange", NAME=name, HOST="127.0.0.1", PORT="1", PASSWORD="s3cret"):
        (message,) = messages("strange")
    assert message.id == "resourcepool.W020"
    assert "s3cret" not in f"{message.msg}{message.hint}"


def test_migrate_is_not_refused_for_problems_after_a_crash() -> None:
    """Only errors stop ``migrate``, not warnings."""
    with alias("strange", TEST={"MIRROR": "default"}):
        call_command("check", databases=["strange"])


@isolate_apps("tests.app")
def test_text_that_is_a_primary_key_is_a_key_too() -> None:
    class Desk(AbstractLease):
        name = models.CharField(primary_key=True, max_length=20)
        note = models.CharField(max_length=20)

        class Meta:
            app_label = "testapp"

    assert [field.name for field in keys_of(Desk)] == ["name"]
    assert [field.name for field in keys_of(Device)] == ["name"]
