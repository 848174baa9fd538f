"""A statement without an answer in time, on PostgreSQL; frozen servers are in tests/concurrency."""

from functools import partial

import pytest
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.db import dialect
from resourcepool.db.retry import fetch_rows, retrying
from resourcepool.db.timeouts import StatementAttempt, statement_timeout
from resourcepool.exceptions import DatabaseUnavailable

pytestmark = pytest.mark.only("postgresql")

SLOW = "SELECT pg_sleep(%s)"


@pytest.fixture
def own() -> BaseDatabaseWrapper:
    return connections["default"]


def session(own: BaseDatabaseWrapper) -> int:
    return int(fetch_rows(own, "SELECT pg_backend_pid()", [])[0][0])


def slow(own: BaseDatabaseWrapper, seconds: float) -> object:
    return fetch_rows(own, SLOW, [seconds])


def test_is_hung_up_and_said_and_not_sent_again(own: BaseDatabaseWrapper) -> None:
    before, sent = session(own), []

    def send() -> None:
        sent.append(1)
        dialect.run(own, SLOW, [30], dialect.all_rows)

    with pytest.raises(DatabaseUnavailable, match=r"no answer within 0.3 s"), statement_timeout(0.3):
        retrying(own, send)
    assert len(sent) == 1
    assert session(own) != before


def test_a_session_that_is_new_or_was_lost_is_hung_up_as_well(own: BaseDatabaseWrapper) -> None:
    own.close()
    for _ in range(2):
        with pytest.raises(DatabaseUnavailable, match=r"no answer within"), statement_timeout(0.3):
            slow(own, 30)
    assert session(own)


def test_a_shorter_timeout_holds_inside_of_a_longer_one(own: BaseDatabaseWrapper) -> None:
    with (
        statement_timeout(60),
        statement_timeout(0.3),
        statement_timeout(60),
        pytest.raises(DatabaseUnavailable, match=r"within 0.3 s"),
    ):
        slow(own, 30)


def test_who_sets_no_limit_waits_for_as_long_as_it_takes(own: BaseDatabaseWrapper) -> None:
    with statement_timeout(0.3):
        before = session(own)
    slow(own, 0.6)
    assert session(own) == before


def test_what_is_answered_in_time_keeps_its_session_for_whatever_comes_after_it(
    own: BaseDatabaseWrapper,
) -> None:
    before = session(own)
    with statement_timeout(0.3), transaction.atomic():
        ask = partial(session, own)
        assert {retrying(own, ask) for _ in range(20)} == {before}
        with own.cursor() as cursor:
            cursor.execute(SLOW, [0.6])  # not ours
    assert session(own) == before


def test_who_is_interrupted_on_the_way_into_a_try_has_the_connection_left_alone(
    own: BaseDatabaseWrapper,
) -> None:
    before = session(own)
    with statement_timeout(0.3):
        StatementAttempt(own)  # and nothing after that
    slow(own, 0.6)
    assert session(own) == before


def test_a_session_that_went_back_into_a_pool_is_left_alone(own: BaseDatabaseWrapper) -> None:
    before = session(own)
    driver, own.connection = own.connection, None
    dialect.shutdown_socket(own)
    own.connection = driver
    assert session(own) == before
