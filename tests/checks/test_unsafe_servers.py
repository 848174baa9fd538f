"""Problems in the configuration of database servers: one server of each kind with all of them."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command

from tests.aliases import alias, at, codes, messages
from tests.committed import *  # noqa: F403 (fixtures)
from tests.servers import MariaDB, MySQL, PostgreSQL, Server


@pytest.fixture(autouse=True)
def _on_committed_rows(transactional_db: None) -> None:
    pass


@pytest.fixture(scope="module")
def mariadb() -> Iterator[Server]:
    options = [
        "--version=10.5.9-MariaDB",
        "--innodb-flush-log-at-trx-commit=2",
        "--log-bin=log",
        "--wsrep-on=ON",
        "--read-only=ON",
        "--character-set-server=latin1",
        "--innodb-default-row-format=compact",
    ]
    with MariaDB(options=options) as server, contextlib.closing(server.connect()) as connection:
        connection.cursor().execute("CHANGE MASTER TO MASTER_HOST = '127.0.0.1'")
        yield server


@pytest.fixture(scope="module")
def mysql() -> Iterator[Server]:
    options = ["--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0", "--read-only=ON"]
    with MySQL(options=options) as server, contextlib.closing(server.connect()) as connection:
        connection.cursor().execute("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1'")
        yield server


@pytest.fixture(scope="module")
def postgresql() -> Iterator[Server]:
    with PostgreSQL(options=["-cfsync=off", "-cfull_page_writes=off"]) as server:
        server.stop()
        (server.data / "standby.signal").touch()
        server.own(server.data / "standby.signal")
        server.start()
        yield server


@pytest.mark.only("mariadb")
class TestMariaDB:
    def test_all_problems_are_reported(self, mariadb: Server, capsys: Any) -> None:
        assert_reported(mariadb, {"E004", "E007", "E019", "W004", "W005", "W006", "W009", "W038"}, capsys)

    def test_a_log_flushed_at_every_commit_is_accepted(self, mariadb: Server) -> None:
        with contextlib.closing(mariadb.connect()) as connection, alias("strange", **at(mariadb.url)):
            connection.cursor().execute("SET GLOBAL sync_binlog = 1, GLOBAL innodb_flush_log_at_trx_commit = 1")
            try:
                assert codes("strange").isdisjoint({"W004", "W005"})
            finally:
                connection.cursor().execute(
                    "SET GLOBAL sync_binlog = 0, GLOBAL innodb_flush_log_at_trx_commit = 2"
                )

    def test_an_old_row_format_would_stop_migrate_and_the_hint_fixes_it(self, mariadb: Server) -> None:
        with contextlib.closing(mariadb.connect()) as connection, alias("strange", **at(mariadb.url)):
            (message,) = (one for one in messages("strange") if one.id == "resourcepool.E019")
            assert "innodb_default_row_format is compact" in message.msg
            connection.cursor().execute(message.hint.partition(";")[0])
            try:
                assert "E019" not in codes("strange")
            finally:
                connection.cursor().execute("SET GLOBAL innodb_default_row_format = compact")


@pytest.mark.only("oracle_mysql")
class TestMySQL:
    def test_all_problems_are_reported(self, mysql: Server, capsys: Any) -> None:
        assert_reported(mysql, {"E007", "W004", "W005", "W009"}, capsys)


@pytest.mark.only("postgresql")
class TestPostgreSQL:
    def test_all_problems_are_reported(self, postgresql: Server, capsys: Any) -> None:
        assert_reported(postgresql, {"E007", "W008"}, capsys)


def assert_reported(server: Server, expected: set[str], capsys: Any) -> None:
    """The check reports these problems, and the doctor that they are unsafe, without a password."""
    with alias("strange", **at(server.url)):
        assert codes("strange") == expected
        for arguments in ([], ["--json"]):
            with pytest.raises(SystemExit) as ended:
                call_command("resourcepool_doctor", *arguments)
            assert ended.value.code == 1
    said = capsys.readouterr()
    assert server.password not in said.out + said.err
    assert "UNSAFE" in said.out.splitlines()[-2]
    (database,) = json.loads(said.out.splitlines()[-1])["databases"]
    unsafe = {one["id"] for one in database["findings"] if one["level"] == "unsafe"}
    assert {f"resourcepool.{code}" for code in expected - {"W038"}} <= unsafe
