"""Changes that wait only briefly for a lock, and whose session does not stay silent for long."""

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pytest
from django.db import OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db import transactions
from resourcepool.db.transactions import IDLE, run_short_transaction, short_transaction
from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.models import Proxy
from tests.app.rows import new

LIMITS = {
    "mariadb": "SELECT @@SESSION.idle_transaction_timeout",
    "mysql": "SELECT @@SESSION.wait_timeout",
    "postgresql": "SELECT EXTRACT(EPOCH FROM CURRENT_SETTING('idle_in_transaction_session_timeout')::interval)",
}
WAITS = {
    "mysql": "SELECT CONCAT(@@SESSION.innodb_lock_wait_timeout, @@SESSION.lock_wait_timeout)",
    "postgresql": "SHOW lock_timeout",
}


def asked(own: BaseDatabaseWrapper, sql: str) -> Any:
    with own.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()[0]


def idle_limit(own: Any) -> float:
    """Return after how many seconds of silence the server ends a transaction of this session."""
    own.ensure_connection()
    is_mariadb = own.vendor == "mysql" and own.mysql_is_mariadb
    return float(asked(own, LIMITS["mariadb" if is_mariadb else own.vendor]))


def locked() -> NoReturn:
    raise OperationalError(1205, "Lock wait timeout exceeded; try restarting transaction")


@pytest.mark.only("mysql")
def test_a_locked_row_is_refused_with_a_sentence() -> None:
    with pytest.raises(DatabaseUnavailable, match="locked by another transaction"):
        run_short_transaction("default", locked)


@pytest.mark.only("mysql")
def test_inside_a_transaction_the_error_is_left_to_whoever_began_it() -> None:
    with pytest.raises(OperationalError), transaction.atomic():
        run_short_transaction("default", locked)


@pytest.mark.only("mysql", "postgresql")
class TestTheSession:
    @pytest.fixture
    def own(self) -> Iterator[BaseDatabaseWrapper]:
        connection = connections["default"]
        yield connection
        connection.close()  # with what was set in its session

    @pytest.fixture
    def by_hand(self, own: BaseDatabaseWrapper) -> Iterator[BaseDatabaseWrapper]:
        """A session in which transactions are begun and ended by hand."""
        own.set_autocommit(False)
        yield own
        own.rollback()
        own.set_autocommit(True)

    def test_is_ended_by_the_server_when_it_is_silent_in_the_transaction(
        self, own: BaseDatabaseWrapper
    ) -> None:
        usual = asked(own, WAITS[own.vendor]), idle_limit(own)
        with short_transaction(own, wait=1):
            assert idle_limit(own) == IDLE
            assert asked(own, WAITS[own.vendor]) in ("11", "1s")
        assert (asked(own, WAITS[own.vendor]), idle_limit(own)) == usual

    @pytest.mark.only("mysql")
    def test_that_cannot_be_set_back_is_used_no_more(
        self, own: BaseDatabaseWrapper, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With its short limit it would end in the pauses between transactions."""

        def refuse(*_: object) -> None:
            raise OperationalError(1205, "Lock wait timeout exceeded")

        with short_transaction(own):
            monkeypatch.setattr(transactions, "execute", refuse)
        assert own.connection is None

    @pytest.mark.parametrize(
        "change", [lambda row: row.save(), lambda row: Proxy.objects.filter(pk=row.pk).drain("a test")]
    )
    def test_keeps_its_limits_in_a_transaction_begun_by_hand(
        self, by_hand: BaseDatabaseWrapper, change: Callable[[Any], object]
    ) -> None:
        row = new(Proxy)
        before = asked(by_hand, WAITS[by_hand.vendor]), idle_limit(by_hand)
        change(row)
        assert (asked(by_hand, WAITS[by_hand.vendor]), idle_limit(by_hand)) == before
