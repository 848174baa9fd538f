"""Frequent statements are prepared on MariaDB."""

import contextlib
import datetime
import functools
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, ProgrammingError, connections
from django.db.backends import utils
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import TransactionManagementError
from django.test import override_settings

from resourcepool.db import dialect
from resourcepool.db.dialect import driver, statement
from resourcepool.db.dialect.statement import SESSION
from resourcepool.models import Proxy
from tests.app.rows import new
from tests.interruptions import at_each_line
from tests.locking import locked

pytestmark = [pytest.mark.only("mariadb"), pytest.mark.usefixtures("transactional_db")]

PREPARED = (
    "SELECT variable_value FROM information_schema.session_status WHERE variable_name = 'Com_stmt_prepare'"
)
FILES = (driver.__file__, statement.__file__)
EXECUTED = PREPARED.replace("prepare'", "execute'")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text is prepared when it is sent for the third time."""
    monkeypatch.setattr(statement.Session, "prepare_after", 2)


def send(on: BaseDatabaseWrapper, sql: str, params: Any = ()) -> list[Any]:
    return [tuple(row) for row in dialect.run(on, sql, params, dialect.all_rows)]


def plan(sql: str, on: BaseDatabaseWrapper) -> Any:
    return statement._plan(sql, on.settings_dict["NAME"])


def signal(number: int) -> str:
    """A statement that fails with this error."""
    return f"BEGIN NOT ATOMIC SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {number}; END"


@contextlib.contextmanager
def transaction_on(on: BaseDatabaseWrapper) -> Iterator[None]:
    """As ``transaction.atomic``, which knows no connection that is nobody's."""
    on.set_autocommit(False)
    on.in_atomic_block = True
    try:
        yield
    finally:
        on.in_atomic_block = False
        on.rollback()
        on.set_autocommit(True)


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
            plan(sql, other).prepare.replace("PREPARE", "DEALLOCATE PREPARE").removesuffix(" FROM %s")
        )
    assert send(other, sql, [2]) == [("lost", 2)]
    executed = number(other, EXECUTED)
    assert send(other, sql, [3]) == [("lost", 3)]
    assert number(other, EXECUTED) == executed


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("gone", sorted(statement.GONE))
def test_what_the_server_cannot_execute_by_name_is_sent_as_a_text(
    other: BaseDatabaseWrapper, gone: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan("SELECT 'gone'", other), "call", signal(gone))
    for _ in range(4):
        assert send(other, "SELECT 'gone'") == [("gone",)]
    assert number(other, PREPARED) == 1


def test_the_same_name_is_the_same_text_in_every_process_and_session() -> None:
    texts = ("SELECT %s", "SELECT %(it)s", "SELECT 1")
    one, same, another = (statement._Plan(sql, "app").prepare for sql in texts)
    assert one == same != another


@pytest.mark.usefixtures("few")
def test_a_session_that_serves_two_databases_does_not_mix_them_up(other: BaseDatabaseWrapper) -> None:
    """As behind a proxy: what is prepared is executed in the database in which it was statement."""
    sql = "SELECT DATABASE()"
    for _ in range(3):
        assert send(other, sql) == [(other.settings_dict["NAME"],)]
    second = connections.create_connection("default")
    second.settings_dict = {**other.settings_dict, "NAME": "information_schema"}
    for _ in range(3):
        send(second, sql)
    own, second.connection = second.connection, other.connection
    second.__dict__[SESSION].driver = other.connection
    with other.cursor() as cursor:
        cursor.execute("USE information_schema")
    assert send(second, sql) == [("information_schema",)]
    second.connection = own
    second.close()


@pytest.mark.usefixtures("few")
def test_an_error_leaves_a_session_what_it_has_prepared(other: BaseDatabaseWrapper) -> None:
    for count in range(3):
        send(other, "SELECT 'kept'")
        with pytest.raises((OperationalError, ProgrammingError)):
            send(other, f"SELECT no_such_{count}")
    assert send(other, "SELECT 'kept'") == [("kept",)]
    assert (number(other, PREPARED), number(other, EXECUTED)) == (1, 2)


@pytest.mark.usefixtures("few")
def test_what_django_logs_are_texts(other: BaseDatabaseWrapper, settings: Any) -> None:
    settings.DEBUG = True
    for _ in range(4):
        send(other, "SELECT 'logged'")
    assert [one["sql"] for one in other.queries[-4:]] == ["SELECT 'logged'"] * 4


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("is_in_transaction", [False, True])
def test_whoever_is_interrupted_gets_the_right_answer_next(
    other: BaseDatabaseWrapper, *, is_in_transaction: bool
) -> None:
    def work() -> None:
        for count in range(4):
            send(other, "SELECT 'mine', %s", [count])

    def work_in_transaction() -> None:
        with transaction_on(other):
            try:
                work()
            finally:
                assert send(other, "SELECT 'mine', %s", [7]) == [("mine", 7)]

    for place in at_each_line(
        work_in_transaction if is_in_transaction else work, other.close, files=FILES, since=()
    ):
        assert send(other, "SELECT 'mine', %s", [8]) == [("mine", 8)], place
        assert number(other, "SELECT 9") == 9, place


@pytest.mark.usefixtures("few")
def test_a_signal_handler_that_sends_statements_changes_no_answer(other: BaseDatabaseWrapper) -> None:
    def work() -> None:
        for count in range(4):
            # Else it is out of step, and sent again.
            with contextlib.suppress(OperationalError):
                assert send(other, "SELECT 'mine', %s", [count]) == [("mine", count)]

    def handle() -> None:
        for count in range(3):
            assert send(other, "SELECT 'mine', %s", [-count]) == [("mine", -count)]

    for place in at_each_line(work, other.close, handler=handle, files=FILES, since=()):
        assert send(other, "SELECT 'mine', %s", [8]) == [("mine", 8)], place


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("refused", sorted(statement.REFUSED))
def test_where_the_server_refuses_that_texts_are_sent(
    other: BaseDatabaseWrapper, refused: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan("SELECT 'no'", other), "prepare", f"{signal(refused)} /* %s */")
    for _ in range(4):
        assert send(other, "SELECT 'no'") == [("no",)]
    assert number(other, EXECUTED) == 0


@pytest.mark.usefixtures("few")
def test_what_is_wrong_with_a_statement_is_said_as_before(other: BaseDatabaseWrapper) -> None:
    for _ in range(4):
        with pytest.raises((OperationalError, ProgrammingError), match="no_such"):
            send(other, "SELECT no_such FROM resourcepool_proxy")


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("number", [1048, 1690, 3819, 4025])
def test_what_violates_a_constraint_is_an_integrity_error_as_in_django(
    other: BaseDatabaseWrapper, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan("SELECT 'violated'", other), "call", signal(number))
    for _ in range(2):
        send(other, "SELECT 'violated'")
    with pytest.raises(IntegrityError) as caught:
        send(other, "SELECT 'violated'")
    assert caught.value.args[0] == number


@pytest.mark.usefixtures("few")
def test_what_a_procedure_has_left_unread_does_not_cost_the_caller_the_session(
    other: BaseDatabaseWrapper,
) -> None:
    """Its cursor is still open, perhaps because the lease is released while its rows are worked on."""
    for _ in range(3):
        send(other, "SELECT 'mine'")
    with other.cursor() as cursor:
        cursor.execute("BEGIN NOT ATOMIC SELECT 1; SELECT 2; SELECT 3; END")
        assert cursor.fetchall() == ((1,),)
        assert send(other, "SELECT 'mine'") == [("mine",)]
    assert number(other, EXECUTED) == 2


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
def test_what_django_and_the_driver_do_around_a_statement_is_left_out(
    other: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        send(other, "SELECT %s", [1])
    with monkeypatch.context() as patch:
        patch.setattr(utils.CursorWrapper, "execute", None)
        assert send(other, "SELECT %s", [2]) == [(2,)]


@pytest.mark.usefixtures("few")
def test_a_tool_that_traces_statements_sees_those_by_name_too(
    other: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Sentry's does it."""
    seen, execute = [], utils.CursorWrapper.execute

    @functools.wraps(execute)
    def traced(self: Any, sql: str, params: Any = None) -> Any:
        seen.append(sql)
        return execute(self, sql, params)

    monkeypatch.setattr(utils.CursorWrapper, "execute", traced)
    for _ in range(4):
        send(other, "SELECT 'traced'")
    assert seen[-2:] == [plan("SELECT 'traced'", other).call] * 2


@pytest.mark.usefixtures("few")
def test_a_cursor_that_somebody_has_wrapped_is_used(
    other: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    class Wrapped(utils.CursorWrapper):
        def execute(self, sql: str, params: Any = None) -> Any:
            seen.append(sql)
            return super().execute(sql, params)

    monkeypatch.setattr(other, "make_cursor", lambda cursor: Wrapped(cursor, other))
    for _ in range(4):
        assert send(other, "SELECT %s", [1]) == [(1,)]
    assert seen[-2:] == [plan("SELECT %s", other).call] * 2


@pytest.mark.usefixtures("few")
def test_in_a_broken_transaction_nothing_is_sent_by_name_either(other: BaseDatabaseWrapper) -> None:
    for _ in range(3):
        send(other, "SELECT 1")
    with transaction_on(other):
        other.needs_rollback = True
        with pytest.raises(TransactionManagementError):
            send(other, "SELECT 1")
        other.needs_rollback = False


@pytest.mark.usefixtures("few")
def test_a_session_prepares_a_few_texts_and_counts_not_many(
    other: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statement, "MAX_PREPARED", 2)
    monkeypatch.setattr(statement, "MAX_COUNTED", 3)
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
