"""Tickets that are locked by another transaction do not block a release, and the other way round."""

import contextlib
from collections.abc import Iterator

import pytest
from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.clock import monotonic
from resourcepool.models import Proxy, Ticket
from resourcepool.waiting.models import pool_name
from resourcepool.waiting.pacing import pacing_of
from tests.app.rows import columns, granted, new
from tests.eventually import InBackground, eventually
from tests.locking import locked
from tests.waiting.handover_helpers import US, release
from tests.waiting.threads import given, ticket

pytestmark = pytest.mark.usefixtures("by_name")  # elsewhere texts are sent


@contextlib.contextmanager
def locked_by(other: BaseDatabaseWrapper, one: Ticket) -> Iterator[None]:
    """Lock this ticket in a transaction of another connection."""
    other.set_autocommit(False)
    with other.cursor() as cursor:
        cursor.execute("SELECT id FROM resourcepool_ticket WHERE id = %s FOR UPDATE", [one.pk])
    yield
    other.rollback()
    other.set_autocommit(True)


@pytest.mark.only("mysql", "postgresql")  # SQLite locks no rows
class TestALockedTicket:
    @pytest.mark.parametrize("likely", [True, False])
    def test_is_passed_for_the_next_without_waiting_for_it(
        self, other: BaseDatabaseWrapper, likely: bool
    ) -> None:
        row = new(Proxy)
        fence = granted(row).fence
        locked, free = ticket(Proxy), ticket(Proxy)
        pacing_of(pool_name(Proxy), "default").awaited_until = monotonic() + 60 * likely
        with locked_by(other, locked):
            assert release(row, fence)
        assert (given(locked), given(free)) == ([], [(row.pk, 2)])

    def test_does_not_keep_a_release_that_it_does_not_fit(self, other: BaseDatabaseWrapper) -> None:
        row = new(Proxy, country="DE")
        fence = granted(row).fence
        locked = ticket(Proxy, selector=US)
        with locked_by(other, locked):
            assert release(row, fence)
        assert columns(row)["holder"] == ""


@pytest.mark.only("postgresql")  # the others lock the row first by themselves
def test_a_release_that_waits_for_its_row_locks_no_ticket() -> None:
    """Otherwise the process of that ticket could not renew its own until then."""
    row = new(Proxy)
    fence, first = granted(row).fence, ticket(Proxy)
    pacing_of(pool_name(Proxy), "default").awaited_until = monotonic() + 60
    with locked(row):
        releasing = InBackground(release, row, fence)
        eventually(waits_for_a_lock)
        with transaction.atomic():
            assert list(Ticket.objects.select_for_update(nowait=True)) == [first]
    assert releasing.result()
    assert given(first) == [(row.pk, 2)]


def waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'WITH %line%'"
        )
        return cursor.fetchone() is not None
