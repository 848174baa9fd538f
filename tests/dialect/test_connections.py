"""Attributes put into a connection object while a session is opened are removed afterwards."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool import dialect


@pytest.fixture
def own(db: None) -> Iterator[BaseDatabaseWrapper]:
    connection = connections.create_connection("default")
    yield connection
    connection.close()


def traced(connection: BaseDatabaseWrapper, as_partial: bool) -> list[Any]:
    """Have somebody else's program notice which sessions begin; returns these."""
    seen, begin = list[Any](), connection.get_new_connection

    def notice(conn_params: Any) -> Any:
        seen.append(begin(conn_params))
        return seen[-1]

    connection.__dict__["get_new_connection"] = partial(notice) if as_partial else notice
    return seen


def test_the_socket_of_a_session_that_begins_is_known(own: BaseDatabaseWrapper) -> None:
    with dialect.limit_connect_time(own, 5):
        own.connect()
        assert dialect.is_socket_known(own)


def test_nothing_stays_in_the_connection_object(own: BaseDatabaseWrapper) -> None:
    before = dict(own.__dict__)
    with pytest.raises(LookupError), dialect.limit_connect_time(own, 5):
        raise LookupError
    assert own.__dict__ == before


@pytest.mark.parametrize("as_partial", [False, True])
def test_what_somebody_else_has_put_there_works_and_stays(own: BaseDatabaseWrapper, as_partial: bool) -> None:
    seen = traced(own, as_partial)
    theirs = own.get_new_connection
    with dialect.limit_connect_time(own, 5):
        own.connect()
        assert dialect.is_socket_known(own)
    assert seen == [own.connection]
    assert own.get_new_connection is theirs


def test_a_block_inside_of_another_one_leaves_it_as_it_is(own: BaseDatabaseWrapper) -> None:
    before = dict(own.__dict__)
    with dialect.limit_connect_time(own, 5):
        outer = dict(own.__dict__)
        with dialect.limit_connect_time(own, 1):
            assert own.__dict__ == outer
        assert own.__dict__ == outer
    assert own.__dict__ == before
