"""One statement and its answer, on a cursor that is kept if that is safe."""

from typing import Any

import pytest
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test.utils import CaptureQueriesContext

from resourcepool.db import dialect
from resourcepool.db.dialect.statement import SESSION
from resourcepool.exceptions import LeaseLost
from resourcepool.models import Proxy
from tests.app.rows import columns, new, several

pytestmark = pytest.mark.usefixtures("transactional_db")


def select(number: int, on: BaseDatabaseWrapper = connection, read: Any = dialect.all_rows) -> Any:
    return dialect.run(on, "SELECT %s", [number], read)


def test_the_answer_is_read_in_full() -> None:
    assert [tuple(row) for row in select(1)] == [(1,)]


def test_a_statement_sent_while_another_is_read_does_not_disturb_it() -> None:
    """A signal handler may acquire or release at any moment, on the same connection."""

    def interrupted(cursor: Any) -> Any:
        select(2)
        return dialect.all_rows(cursor)

    select(0)
    assert [tuple(row) for row in select(1, read=interrupted)] == [(1,)]


def test_after_a_reconnect_there_is_a_new_cursor(other: BaseDatabaseWrapper) -> None:
    select(1, other)
    other.close()
    assert [tuple(row) for row in select(2, other)] == [(2,)]


def test_whoever_counts_queries_sees_every_one(other: BaseDatabaseWrapper) -> None:
    select(1, other)
    with CaptureQueriesContext(other) as captured:  # type: ignore[no-untyped-call]
        select(2, other)
        select(3, other)
    assert len(captured) == 2


@pytest.mark.only("mysql")
def test_the_cursor_is_kept_between_statements(other: BaseDatabaseWrapper) -> None:
    select(1, other)
    kept = other.__dict__[SESSION]._cursor
    select(2, other)
    assert other.__dict__[SESSION]._cursor is kept is not None


@pytest.mark.only("sqlite", "postgresql")
def test_no_cursor_is_kept_that_could_keep_a_lock(other: BaseDatabaseWrapper) -> None:
    select(1, other)
    assert SESSION not in other.__dict__


@pytest.mark.only("mysql")
class TestASignalHandlerThatAcquires:
    """The driver reads the reply, runs the handler, and only then asks the session what came of the statement."""

    @pytest.fixture
    def handler(self, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
        """What is done, once, when the next reply has been read."""
        pending: list[Any] = []
        query = connections_of_the_driver().query

        def interrupted(self: Any, sql: Any) -> Any:
            answer = query(self, sql)
            if pending:
                pending.pop()()
            return answer

        monkeypatch.setattr(connections_of_the_driver(), "query", interrupted)
        return pending

    def test_leaves_a_claim_the_fence_that_it_was_granted(self, handler: list[Any]) -> None:
        several(Proxy, 2)
        Proxy.objects.update(fence=7)
        row = new(Proxy)
        others: list[Any] = []
        Proxy.pool.acquire(timeout=5).release()  # type: ignore[union-attr]
        Proxy.objects.exclude(pk=row.pk).update(fence=100)
        handler.append(lambda: others.append(Proxy.pool.acquire(wait=False)))
        lease: Any = Proxy.pool.acquire(timeout=5)
        for one in (lease, *others):
            assert one.fence == columns(one.resource)["fence"]
            one.release()

    def test_does_not_have_a_lost_lease_renewed(self, handler: list[Any]) -> None:
        several(Proxy, 2)
        lease: Any = Proxy.pool.acquire(timeout=5)
        Proxy.objects.filter(pk=lease.pk).update(fence=50)
        handler.append(lambda: Proxy.pool.acquire(wait=False))
        with pytest.raises(LeaseLost):
            lease.renew()


def connections_of_the_driver() -> Any:
    connection.ensure_connection()
    return type(connection.connection)


def test_a_session_that_the_driver_has_closed_is_replaced() -> None:
    new(Proxy)
    lease: Any = Proxy.pool.acquire(timeout=5)
    if connection.vendor != "sqlite":
        connection.connection.close()
    lease.renew()
    lease.release()


@pytest.mark.only("mysql")
def test_an_interrupted_one_leaves_no_session_whose_next_reply_is_another_ones(
    other: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python runs signal handlers between sending a statement and reading the reply."""
    from MySQLdb.connections import Connection

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    select(1, other)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Connection, "store_result", interrupted)
        select(2, other)
    with other.cursor() as cursor:  # the caller's own, which nothing of ours repeats
        cursor.execute("SELECT 3")
        assert cursor.fetchone() == (3,)
