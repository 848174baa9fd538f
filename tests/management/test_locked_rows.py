"""Rows that a session locks: commands name it."""

from typing import Any

import pytest
from django.db import connection

from resourcepool.db import transactions
from resourcepool.models import Proxy
from tests.app.rows import columns, expire, granted, new
from tests.committed import other
from tests.leases.test_lock_holders import LOCKS, SESSION, send
from tests.management.command_runner import run

__all__ = ["other"]
HOLDER = "crawler3/4711/MainThread/a.1"

pytestmark = [pytest.mark.only("mysql", "postgresql"), pytest.mark.usefixtures("history")]


@pytest.fixture
def session(other: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The number of a session that locks rows, with ``lock``."""
    monkeypatch.setattr(transactions, "SHORT_LOCK_WAIT", 1)
    other.set_autocommit(False)
    ((number,),) = send(other, SESSION[other.vendor], new(Proxy))
    yield number
    other.close()


@pytest.fixture
def stuck(session: int, other: Any) -> Any:
    """A row whose lease has expired while its holder is inside ``guard``."""
    row = new(Proxy)
    granted(row, holder=HOLDER)
    expire(row)
    send(other, LOCKS["changed twice"][0], row)
    return row


def test_closing_what_is_locked_says_who_prevents_it(session: int, other: Any) -> None:
    row = new(Proxy)
    granted(row)
    send(other, LOCKS["changed twice"][0], row)
    closed = run("close", "proxy", row.pk, "--reason", "gone")
    assert closed.code == 1
    assert f"resourcepool.Proxy {row.pk} is locked by session {session}" in closed.err


WAYS = [["proxy", "{pk}"], ["--holder", HOLDER], ["--host", "crawler3"], ["proxy", "--all", "--yes"]]


@pytest.mark.parametrize("words", WAYS, ids=lambda words: words[0] + words[1][:6])
def test_closing_an_expired_lease_that_is_locked_names_the_session(
    stuck: Any, session: int, words: list[str]
) -> None:
    closed = run("close", *[word.format(pk=stuck.pk) for word in words], "--reason", "gone")
    assert closed.code == 1
    assert f"resourcepool.Proxy {stuck.pk} is locked by session {session} from 127.0.0.1:" in closed.err


def test_draining_what_is_locked_says_who_prevents_it(stuck: Any, session: int) -> None:
    drained = run("drain", "proxy", stuck.pk, "--reason", "new cable")
    assert drained.code == 1
    assert f"resourcepool.Proxy {stuck.pk} is locked by session {session}" in drained.err
    assert columns(stuck)["in_service"]


class TestWhy:
    def test_names_the_session(self, stuck: Any, session: int) -> None:
        why = run("why", "proxy", stuck.pk)
        assert "expired, but it cannot be leased while its row is locked" in why.out
        assert f"is locked by session {session} from 127.0.0.1:" in why.out

    def test_names_it_for_programs(self, stuck: Any, session: int) -> None:
        assert run("why", "proxy", stuck.pk, "--json").json["locked"]["session"]["number"] == session

    def test_names_it_while_the_lease_runs(self, session: int, other: Any) -> None:
        row = new(Proxy)
        granted(row)
        send(other, LOCKS["changed twice"][0], row)
        assert f"is locked by session {session} from 127.0.0.1:" in run("why", "proxy", row.pk).out

    def test_says_nothing_of_a_row_that_is_not_locked(self, session: int) -> None:
        row = new(Proxy)
        granted(row)
        assert run("why", "proxy", row.pk, "--json").json["locked"] is None
        assert connection.vendor in SESSION
