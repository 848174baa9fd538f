"""Statements that a session sends often are prepared, on MariaDB."""

import datetime
from decimal import Decimal
from typing import Any

import pytest
from django.db import OperationalError, ProgrammingError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import override_settings

from resourcepool import dialect
from resourcepool.dialect import prepared
from resourcepool.models import Proxy
from tests.app.rows import new
from tests.locking import locked

pytestmark = [pytest.mark.only("mysql"), pytest.mark.usefixtures("transactional_db")]

PREPARED = (
    "SELECT variable_value FROM information_schema.session_status WHERE variable_name = 'Com_stmt_prepare'"
)
EXECUTED = PREPARED.replace("prepare'", "execute'")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text is prepared when it is sent for the third time."""
    monkeypatch.setattr(prepared.Prepared, "often", 2)


def send(on: BaseDatabaseWrapper, sql: str, params: Any = ()) -> list[Any]:
    return [tuple(row) for row in dialect.run(on, sql, params, dialect.all_rows)]


def number(on: BaseDatabaseWrapper, what: str) -> int:
    with on.cursor() as cursor:
        cursor.execute(what)
        return int(cursor.fetchone()[0])


@pytest.mark.usefixtures("few")
def test_a_text_is_prepared_once_it_has_been_sent_often(other: BaseDatabaseWrapper) -> None:
    for count in range(5):
        assert send(other, "SELECT %s", [count]) == [(count,)]
    assert (number(other, PREPARED), number(other, EXECUTED)) == (1, 3)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        7,
        -1.5,
        Decimal("2.50"),
        "it's",
        "50 %",
        "a?b",
        "\\",
        "Grüße 🙂",
        datetime.date(2026, 1, 2),
    ],
)
def test_every_value_arrives_as_it_does_in_a_text(other: BaseDatabaseWrapper, value: Any) -> None:
    sql, params = "SELECT %(it)s, %(other)s, %(it)s LIKE '50 %%'", {"other": 2, "it": value}
    first, _, last = (send(other, sql, params) for _ in range(3))
    assert last == first
    assert number(other, EXECUTED) == 1


@pytest.mark.usefixtures("few")
def test_a_new_session_prepares_anew(other: BaseDatabaseWrapper) -> None:
    for _ in range(2):
        for _ in range(4):
            assert send(other, "SELECT 1") == [(1,)]
        assert number(other, PREPARED) == 1
        other.close()


@pytest.mark.usefixtures("few")
def test_a_session_that_has_lost_it_is_sent_the_text(other: BaseDatabaseWrapper) -> None:
    """As behind a proxy that gives a client now this session of the server, and now that."""
    sql = "SELECT 'lost', %s"
    for _ in range(3):
        send(other, sql, [1])
    with other.cursor() as cursor:
        cursor.execute(
            prepared._plan(sql).prepare.replace("PREPARE", "DEALLOCATE PREPARE").removesuffix(" FROM %s")
        )
    assert send(other, sql, [2]) == [("lost", 2)]
    executed = number(other, EXECUTED)
    assert send(other, sql, [3]) == [("lost", 3)]
    assert number(other, EXECUTED) == executed


def test_the_same_name_is_the_same_text_in_every_process_and_session() -> None:
    one, same, another = (prepared._Plan(sql).prepare for sql in ("SELECT %s", "SELECT %(it)s", "SELECT 1"))
    assert one == same != another


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("refused", sorted(prepared.REFUSED))
def test_where_the_server_refuses_that_texts_are_sent(
    other: BaseDatabaseWrapper, refused: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    no = f"BEGIN NOT ATOMIC SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {refused}; END"
    monkeypatch.setattr(prepared._plan("SELECT 'no'"), "prepare", f"{no} /* %s */")
    for _ in range(4):
        assert send(other, "SELECT 'no'") == [("no",)]
    assert number(other, EXECUTED) == 0


@pytest.mark.usefixtures("few")
def test_what_is_wrong_with_a_statement_is_said_as_before(other: BaseDatabaseWrapper) -> None:
    for _ in range(4):
        with pytest.raises((OperationalError, ProgrammingError), match="no_such"):
            send(other, "SELECT no_such FROM resourcepool_proxy")


@pytest.mark.usefixtures("few")
@override_settings(RESOURCEPOOL={"PREPARED_STATEMENTS": False})
def test_a_project_can_do_without(other: BaseDatabaseWrapper) -> None:
    for _ in range(4):
        send(other, "SELECT 1")
    assert number(other, PREPARED) == 0


@pytest.mark.usefixtures("few")
def test_who_looks_on_sees_texts(other: BaseDatabaseWrapper) -> None:
    seen = []

    def look_on(execute: Any, sql: str, *rest: Any) -> Any:
        seen.append(sql)
        return execute(sql, *rest)

    with other.execute_wrapper(look_on):
        for _ in range(4):
            send(other, "SELECT 1")
    assert seen[-4:] == ["SELECT 1"] * 4


@pytest.mark.usefixtures("few")
def test_a_session_prepares_a_few_texts_and_counts_not_many(
    other: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "MOST", 2)
    monkeypatch.setattr(prepared, "COUNTED", 3)
    for _ in range(3):
        for text in range(5):
            assert send(other, f"SELECT {text}") == [(text,)]
    assert number(other, PREPARED) == 2


@pytest.mark.usefixtures("by_name")
def test_a_claim_does_not_wait_for_a_locked_row_whatever_way_it_is_sent() -> None:
    with locked(new(Proxy)):
        assert Proxy.pool.acquire(wait=False) is None
    lease = Proxy.pool.acquire(wait=False)
    assert lease is not None
    lease.release()
