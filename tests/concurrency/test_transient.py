"""Errors that mean "not this time": sent again by themselves, but never inside the caller's transaction."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError, ProgrammingError, connection, transaction

from resourcepool import dialect
from resourcepool.dialect import Trouble
from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.leases.retry import TRIES
from resourcepool.models import Proxy
from tests.app.models import Team
from tests.app.rows import columns, new, several
from tests.concurrency.wire import Interference


class Refusal(Exception):
    """Stands for the driver's own exception, which Django's error has as its cause."""

    def __init__(self, state: str) -> None:
        super().__init__(state)
        self.sqlstate = state


def by_postgresql(state: str) -> OperationalError:
    error = OperationalError(f"refused with {state}")
    error.__cause__ = Refusal(state)
    return error


ERRORS: dict[str, dict[str, Callable[[], OperationalError]]] = {
    "mysql": {
        "deadlock": lambda: OperationalError(1213, "Deadlock found when trying to get lock"),
        "record has changed": lambda: OperationalError(1020, "Record has changed since last read"),
        "lock wait": lambda: OperationalError(1205, "Lock wait timeout exceeded"),
    },
    "postgresql": {
        "serialisation": lambda: by_postgresql("40001"),
        "deadlock": lambda: by_postgresql("40P01"),
        "lock wait": lambda: by_postgresql("55P03"),
    },
    "sqlite": {
        "locked": lambda: OperationalError("database is locked"),
        "table locked": lambda: OperationalError("database table is locked"),
        "busy": lambda: OperationalError("database is busy"),
    },
}


@pytest.fixture(params=ERRORS[connection.vendor])
def error(request: pytest.FixtureRequest) -> Callable[[], OperationalError]:
    return ERRORS[connection.vendor][request.param]


@pytest.fixture
def interference() -> Iterator[Interference]:
    interference = Interference()
    with connection.execute_wrapper(interference):
        yield interference


VERBS: dict[str, Callable[[Any], object]] = {
    "renew": lambda lease: lease.renew(),
    "release": lambda lease: lease.release(),
    "quarantine": lambda lease: lease.quarantine("banned"),
    "hand_over": lambda lease: lease.hand_over("the next one"),
    "resource": lambda lease: lease.resource,
}


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_lets_them_through_to_the_caller(
    interference: Interference, error: Callable[[], OperationalError], verb: str
) -> None:
    row = new(Proxy)
    lease: Any = Proxy.pool.acquire(wait=False)
    interference.expect(table(), error, times=2)
    VERBS[verb](lease)
    assert interference.raised == 2
    assert not lease.lost.is_set()
    assert columns(row)["fence"] == 1 + (verb in ("release", "quarantine", "hand_over"))


@pytest.mark.parametrize("statement", ["SELECT", "UPDATE"])
def test_acquire_gets_a_row_all_the_same(
    interference: Interference, error: Callable[[], OperationalError], statement: str
) -> None:
    """A row that somebody else has locked is left to them, and another one taken."""
    several(Proxy, 3)
    interference.expect(statement, error, times=2)
    with Proxy.pool.lease(timeout=5) as lease:
        assert interference.raised == 2
        lease.ensure_held()
    assert Proxy.objects.available().count() == 3


def test_acquire_many_gets_all_or_nothing_all_the_same(
    interference: Interference, error: Callable[[], OperationalError]
) -> None:
    several(Proxy, 3)
    interference.expect("UPDATE", error, times=2)
    leases: Any = Proxy.pool.acquire_many(3, timeout=5)
    assert interference.raised == 2
    assert [lease.fence for lease in leases] == [1, 1, 1]


def test_inside_the_callers_transaction_the_first_one_decides(
    interference: Interference, error: Callable[[], OperationalError]
) -> None:
    """It was rolled back by the server, whole or in part; sending one statement of it again would commit half."""
    new(Proxy)
    lease: Any = Proxy.pool.acquire(wait=False)
    interference.expect("UPDATE", error, times=1)
    with pytest.raises(OperationalError), transaction.atomic():
        Team.objects.create(name="not to be seen")
        with lease.guard():
            pass
    assert interference.raised == 1
    assert Team.objects.count() == 0
    with transaction.atomic(), lease.guard():
        Team.objects.create(name="the whole transaction again")
    assert Team.objects.count() == 1


def test_they_are_not_sent_again_for_ever(
    interference: Interference, error: Callable[[], OperationalError]
) -> None:
    new(Proxy)
    lease: Any = Proxy.pool.acquire(wait=False)
    interference.expect("UPDATE", error, times=1_000)
    with pytest.raises(DatabaseUnavailable, match="default"):
        lease.renew()
    assert interference.raised == TRIES
    interference.expect("", error, times=0)
    lease.renew()


def test_an_error_that_does_not_get_better_is_not_sent_again(interference: Interference) -> None:
    new(Proxy)
    lease: Any = Proxy.pool.acquire(wait=False)
    interference.expect("UPDATE", lambda: OperationalError(1290_000, "no such thing as patience"))
    if connection.vendor == "postgresql":
        interference.expect("UPDATE", lambda: by_postgresql("42501"))
    with pytest.raises(OperationalError):
        lease.renew()
    assert interference.raised == 1


@pytest.mark.parametrize(
    ("vendor", "error", "meaning"),
    [
        ("mysql", OperationalError(1213, ""), Trouble.CONFLICT),
        ("mysql", OperationalError(1020, ""), Trouble.CONFLICT),
        ("mysql", OperationalError(1205, ""), Trouble.BUSY),
        ("mysql", OperationalError(2006, ""), Trouble.DISCONNECTED),
        ("mysql", OperationalError(2013, ""), Trouble.DISCONNECTED),
        ("mysql", OperationalError(1290, ""), Trouble.DISCONNECTED),
        ("mysql", OperationalError(1836, ""), Trouble.DISCONNECTED),
        ("mysql", ProgrammingError(2014, "Commands out of sync"), Trouble.DISCONNECTED),
        ("mysql", OperationalError(1054, "Unknown column"), Trouble.NOT_MIGRATED),
        ("postgresql", by_postgresql("42703"), Trouble.NOT_MIGRATED),
        ("sqlite", OperationalError("no such column: x"), Trouble.NOT_MIGRATED),
        ("sqlite", OperationalError("table x has no column named y"), Trouble.NOT_MIGRATED),
        ("mysql", OperationalError(1045, "Access denied"), None),
        ("mysql", OperationalError(1049, "Unknown database"), None),
        ("postgresql", by_postgresql("40001"), Trouble.CONFLICT),
        ("postgresql", by_postgresql("40P01"), Trouble.CONFLICT),
        ("postgresql", by_postgresql("55P03"), Trouble.BUSY),
        ("postgresql", by_postgresql("08006"), Trouble.DISCONNECTED),
        ("postgresql", by_postgresql("57P01"), Trouble.DISCONNECTED),
        ("postgresql", by_postgresql("25006"), Trouble.DISCONNECTED),
        ("postgresql", OperationalError("the connection is closed"), Trouble.DISCONNECTED),
        ("postgresql", OperationalError('password authentication failed for user "x"'), None),
        ("postgresql", OperationalError('database "x" does not exist'), None),
        ("sqlite", OperationalError("database is locked"), Trouble.CONFLICT),
        ("sqlite", OperationalError("no such table: x"), Trouble.NOT_MIGRATED),
        ("sqlite", OperationalError("disk I/O error"), None),
        ("mysql", LookupError(1213), None),
    ],
)
def test_what_an_error_means(vendor: str, error: Exception, meaning: Trouble | None) -> None:
    wrapper: Any = SimpleNamespace(vendor=vendor)
    assert dialect.trouble(wrapper, error) is meaning


def table() -> str:
    return connection.ops.quote_name(Proxy._meta.db_table)
