"""The session that locks a row; SQLite cannot name one."""

from typing import Any

import pytest
from django.db import connection, connections, transaction

from resourcepool.db.row_locks import Locked, lockers
from resourcepool.models import Proxy
from tests.app.rows import expire, granted, new
from tests.eventually import eventually

SESSION = {"mysql": "SELECT CONNECTION_ID()", "postgresql": "SELECT pg_backend_pid()"}
LOCKS = {
    "changed": ["UPDATE {table} SET holder = 'x' WHERE {pk} = %s"],
    "locked": ["SELECT 1 FROM {table} WHERE {pk} = %s FOR UPDATE"],
    "changed twice": ["UPDATE {table} SET fence = fence + 1 WHERE {pk} = %s"] * 2,
    "changed after a savepoint": ["SAVEPOINT one", "UPDATE {table} SET holder = 'x' WHERE {pk} = %s"],
}


def send(on: Any, sql: str, row: Any) -> Any:
    quote, meta = on.ops.quote_name, row._meta
    sql = sql.format(table=quote(meta.db_table), pk=quote(meta.pk.column))
    with on.cursor() as cursor:
        cursor.execute(sql, [meta.pk.get_db_prep_value(row.pk, on)] if "%s" in sql else [])
        return cursor.fetchall() if cursor.description else None


@pytest.fixture
def beside(other: Any) -> Any:
    other.set_autocommit(False)
    yield other
    other.close()


@pytest.mark.only("mysql", "postgresql")
class TestALockedRow:
    @pytest.mark.parametrize("how", LOCKS)
    def test_names_its_session_and_the_statement_that_ends_it(self, row: Any, beside: Any, how: str) -> None:
        new(type(row))
        for sql in LOCKS[how]:
            send(beside, sql, row)
        ((number,),) = send(beside, SESSION[beside.vendor], row)
        found = lockers("default", type(row), [row.pk, *type(row).objects.values_list("pk", flat=True)])
        assert [one.id for one in found] == [row.pk], "the other one is not locked"
        session = found[0].session
        assert session
        assert f"{row.pk} is locked by session {number} from 127.0.0.1:" in str(found[0])
        assert (session.number, session.idle is not None) == (number, True)
        assert "127.0.0.1:" in session.client
        with connection.cursor() as cursor:
            cursor.execute(session.command)
        eventually(lambda: lockers("default", type(row), [row.pk]) == [])

    def test_whoever_waits_for_it_is_not_named(self, row: Any, beside: Any) -> None:
        """The keeper of somebody who holds it, for example."""
        send(beside, LOCKS["locked"][0], row)
        ((number,),) = send(beside, SESSION[beside.vendor], row)
        for _ in range(2):
            (found,) = lockers("default", type(row), [row.pk])
            assert found.session
            assert found.session.number == number

    def test_is_not_asked_for_in_a_transaction_of_the_caller(self, row: Any, beside: Any) -> None:
        send(beside, LOCKS["locked"][0], row)
        with transaction.atomic():
            assert lockers("default", type(row), [row.pk]) == []

    @pytest.mark.only("mysql")
    def test_is_told_of_without_a_session_if_several_may_have_it(self, beside: Any) -> None:
        rows = new(Proxy), new(Proxy)
        send(beside, LOCKS["locked"][0], rows[0])
        second = connections.create_connection("default")
        second.set_autocommit(False)
        try:
            send(second, LOCKS["locked"][0], rows[1])
            assert [one.session for one in lockers("default", Proxy, [row.pk for row in rows])] == [None, None]
        finally:
            second.close()

    @pytest.mark.only("mysql")
    def test_is_told_of_also_to_a_user_who_may_not_see_whose_it_is(
        self, beside: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        row = new(Proxy)
        send(beside, LOCKS["locked"][0], row)
        with connection.cursor() as cursor:
            cursor.execute("DROP USER IF EXISTS blind@'%'")
            cursor.execute("CREATE USER blind@'%' IDENTIFIED BY 'blind'")
            cursor.execute(f"GRANT ALL ON `{connection.settings_dict['NAME']}`.* TO blind@'%'")
        try:
            with monkeypatch.context() as patch:
                for name in ("USER", "PASSWORD"):
                    patch.setitem(connection.settings_dict, name, "blind")
                connection.close()
                (found,) = lockers("default", Proxy, [row.pk])
        finally:
            connection.close()
            with connection.cursor() as cursor:
                cursor.execute("DROP USER blind@'%'")
        assert (found.id, found.session) == (row.pk, None)

    def test_that_cannot_be_seen_is_said_to_be_so(self) -> None:
        assert str(Locked("app.Thing", 7, None)).startswith("app.Thing 7 is locked by a session that")


def test_rows_that_are_not_locked_or_not_there_have_none(row: Any) -> None:
    granted(row)
    expire(row)
    pk = row.pk
    row.delete()
    assert lockers("default", type(row), [pk]) == lockers("default", type(row), []) == []
    other = new(type(row))
    assert lockers("default", type(row), [other.pk]) == []
