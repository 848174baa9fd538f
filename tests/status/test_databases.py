"""The sessions of database servers, and the alarm when few are left."""

from contextlib import closing

import pytest
from django.db import connection

from resourcepool.db.dialect import private_connection
from resourcepool.status.internals import DatabaseStatus, database_alarms, databases


@pytest.mark.parametrize(
    ("sessions", "most", "is_alarmed"), [(0, 151, False), (135, 151, False), (136, 151, True), (151, 151, True)]
)
def test_less_than_a_tenth_left_is_an_alarm(sessions: int, most: int, is_alarmed: bool) -> None:
    raised = [*database_alarms([DatabaseStatus("default", sessions, most)])]
    assert bool(raised) is is_alarmed


def test_the_alarm_says_how_many_are_left_and_what_to_do() -> None:
    (alarm,) = database_alarms([DatabaseStatus("default", 148, 151)])
    assert str(alarm).startswith("database: default: 3 of 151 sessions left.")
    assert "max_connections" in alarm.text
    assert alarm.is_severe


@pytest.mark.django_db
@pytest.mark.only("sqlite")
def test_sqlite_has_no_limit() -> None:
    assert databases() == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.only("mysql", "postgresql")
def test_each_session_of_the_server_counts() -> None:
    (before,) = databases()
    assert 0 < before.sessions <= before.most
    assert before.left == before.most - before.sessions
    with closing(private_connection(connection.alias)) as another:
        another.ensure_connection()
        (during,) = databases()
    assert during.sessions > before.sessions
