"""A hanging or failing database does not delay the keeper's threads for another one."""

from collections.abc import Iterator
from itertools import takewhile
from typing import Any

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.leases.keeper import keeper
from resourcepool.leases.lease import Lease
from tests.aliases import alias
from tests.app.models import Bare, Device
from tests.app.rows import granted, hold, new, steal, wanted
from tests.committed import Clock, Statement
from tests.eventually import InBackground, eventually
from tests.leases.outage import Outage, renewed


class TestSeveralDatabases:
    """The same one under several names here; each name has a thread and a connection of its own."""

    def test_one_that_stands_still_costs_nobody_on_another_one_a_renewal(
        self, process_clock: Clock, outage: Outage
    ) -> None:
        with alias("stands_still", leased=False):
            stuck, works = held_on("stands_still"), hold(new(Bare), ttl=60)
            outage.only = "stands_still"
            with outage.hanging():
                for _ in range(4):
                    process_clock.advance(25)
                    eventually(renewed([works], process_clock))
                assert stuck.lost.wait(20)
                begun = hold(new(Device), ttl=60)
                process_clock.advance(25)
                eventually(renewed([works, begun], process_clock))

    def test_one_that_stands_still_delays_no_news_from_another_one(
        self, process_clock: Clock, outage: Outage
    ) -> None:
        with alias("stands_still", leased=False):
            row = new(Bare)
            stuck, stolen = held_on("stands_still"), hold(row, ttl=60)
            outage.only = "stands_still"
            with outage.hanging():
                steal(row)
                process_clock.advance(25)
                assert stolen.lost.wait(20)
            eventually(renewed([stuck], process_clock))

    def test_it_is_visible_whichever_thread_has_died(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with alias("elsewhere", leased=False):
            held_on("elsewhere")
        assert keeper.is_alive()
        died = InBackground(str)
        died.result()
        monkeypatch.setattr(keeper._routines["elsewhere"].owner.daemon, "_thread", died)
        assert not keeper.is_alive()

    @pytest.mark.usefixtures("receivers_that_exit")
    def test_what_is_told_of_one_ends_the_renewals_of_none(self, process_clock: Clock) -> None:
        with alias("elsewhere", leased=False):
            over, works = held_on("elsewhere", max_hold=40), hold(new(Bare), ttl=60)
            process_clock.advance(39)
            assert over.lost.wait(20)
            eventually(renewed([works], process_clock))


def held_on(using: str, **terms: Any) -> Lease:
    """Return a lease of a new row, by way of this database."""
    row = new(Bare)
    return Lease(Bare, using, granted(row), wanted(**terms))


@pytest.fixture
def leases() -> list[Lease]:
    """Of a device and another row, in this order."""
    return [hold(new(model), ttl=60) for model in (Device, Bare)]


@pytest.fixture
def locked_table(leases: list[Lease], other: BaseDatabaseWrapper) -> Iterator[str]:
    """The table of ``Device`` while somebody changes it, or has forgotten that it is locked."""
    table = other.ops.quote_name(Device._meta.db_table)
    is_mysql = other.vendor == "mysql"
    with other.cursor() as cursor:
        if is_mysql:
            cursor.execute(f"LOCK TABLES {table} WRITE")
        else:
            cursor.execute("BEGIN")
            cursor.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield table
        cursor.execute("UNLOCK TABLES" if is_mysql else "ROLLBACK")


@pytest.mark.only("mysql", "postgresql")  # on SQLite a lock is one of the whole database
class TestATableThatIsLocked:
    def test_costs_the_leases_on_other_tables_two_short_waits(
        self, process_clock: Clock, leases: list[Lease], locked_table: str, statements: list[Statement]
    ) -> None:
        locked, works = leases
        process_clock.advance(25)
        eventually(renewed([works], process_clock))
        sent = [one.sql for one in statements if one.thread == "resourcepool-background-default"]
        before = takewhile(lambda sql: Bare._meta.db_table not in sql, sent)  # afterwards it is tried again
        assert len([sql for sql in before if locked_table in sql]) == 2
        assert locked.is_held, "and is tried again"
