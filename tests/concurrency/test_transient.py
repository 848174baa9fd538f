"""Transient errors: statements are retried, but never inside the caller's transaction."""

import re
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import (
    DatabaseError,
    IntegrityError,
    InternalError,
    OperationalError,
    ProgrammingError,
    connection,
    transaction,
)

from resourcepool.db import dialect
from resourcepool.db.dialect import ErrorKind
from resourcepool.db.retry import TRIES, retrying
from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.models import Proxy
from tests.app.models import Team
from tests.app.rows import columns, hold, new, several
from tests.concurrency.connection_cutter import Interference
from tests.waiting.threads import Waiting


class Refusal(Exception):
    """Replaces the driver's exception, the cause of Django's error."""

    def __init__(self, state: str) -> None:
        super().__init__(state)
        self.sqlstate = state


def by_postgresql(state: str, kind: type[DatabaseError] = OperationalError) -> DatabaseError:
    error = kind(f"refused with {state}")
    error.__cause__ = Refusal(state)
    return error


ERRORS: dict[str, dict[str, Callable[[], DatabaseError]]] = {
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
def test_no_verb_raises_them(
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
def test_acquire_still_gets_a_row(
    interference: Interference, error: Callable[[], OperationalError], statement: str
) -> None:
    """A locked row is skipped, and another one claimed."""
    several(Proxy, 3)
    interference.expect(statement, error, times=2)
    with Proxy.pool.lease(timeout=5) as lease:
        assert interference.raised == 2
        lease.ensure_held()
    assert Proxy.objects.available().count() == 3


def test_acquire_many_still_gets_all_or_none(
    interference: Interference, error: Callable[[], OperationalError]
) -> None:
    several(Proxy, 3)
    interference.expect("UPDATE", error, times=2)
    leases: Any = Proxy.pool.acquire_many(3, timeout=5)
    assert interference.raised == 2
    assert [lease.fence for lease in leases] == [1, 1, 1]


def test_inside_the_callers_transaction_the_first_error_is_raised(
    interference: Interference, error: Callable[[], OperationalError]
) -> None:
    """The server rolled back all or part of it; a retry of one statement would commit only half."""
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


def test_retries_are_limited(interference: Interference, error: Callable[[], OperationalError]) -> None:
    new(Proxy)
    lease: Any = Proxy.pool.acquire(wait=False)
    interference.expect("UPDATE", error, times=1_000)
    with pytest.raises(DatabaseUnavailable, match="default"):
        lease.renew()
    assert interference.raised == TRIES
    interference.expect("", error, times=0)
    lease.renew()


REFUSALS: dict[str, dict[str, Callable[[], DatabaseError]]] = {
    "mysql": {
        "disk full": lambda: OperationalError(1021, "Disk full; waiting for someone to free some space"),
        "table full": lambda: OperationalError(1114, "The table is full"),
        "denied": lambda: OperationalError(1142, "UPDATE command denied to user"),
        "unheard of": lambda: OperationalError(1290_000, "no such thing as patience"),
    },
    "postgresql": {
        "disk full": lambda: by_postgresql("53100"),
        "out of memory": lambda: by_postgresql("53200"),
        "denied": lambda: by_postgresql("42501", ProgrammingError),
        "unheard of": lambda: by_postgresql("XX000", InternalError),
    },
    "sqlite": {
        "disk full": lambda: OperationalError("database or disk is full"),
        "read only": lambda: OperationalError("attempt to write a readonly database"),
        "disk": lambda: OperationalError("disk I/O error"),
    },
}


@pytest.fixture(params=REFUSALS[connection.vendor])
def refusal(request: pytest.FixtureRequest) -> Callable[[], DatabaseError]:
    return REFUSALS[connection.vendor][request.param]


LOST: dict[str, Callable[[], OperationalError]] = {
    "mysql": lambda: OperationalError(2013, "Lost connection to server during query"),
    "postgresql": lambda: OperationalError("the connection is closed"),
}


class TestWhatTheDatabaseRefuses:
    """Nothing was changed, and the error may last."""

    @pytest.mark.parametrize("verb", VERBS)
    def test_is_raised_at_once_as_our_own_error(
        self, interference: Interference, refusal: Callable[[], DatabaseError], verb: str
    ) -> None:
        new(Proxy)
        lease: Any = Proxy.pool.acquire(wait=False)
        interference.expect(table(), refusal, times=1_000)
        with pytest.raises(DatabaseUnavailable, match=re.escape(str(refusal()))):
            VERBS[verb](lease)
        assert interference.raised == 1

    def test_is_raised_without_waiting(
        self, interference: Interference, refusal: Callable[[], DatabaseError]
    ) -> None:
        new(Proxy)
        interference.expect("UPDATE", refusal, times=1_000)
        with pytest.raises(DatabaseUnavailable, match=re.escape(str(refusal()))):
            Proxy.pool.acquire(wait=False)

    def test_is_waited_out(self, interference: Interference, refusal: Callable[[], DatabaseError]) -> None:
        new(Proxy)
        interference.expect("UPDATE", refusal, times=1)
        with Proxy.pool.lease(timeout=10) as lease:
            lease.ensure_held()
        assert interference.raised == 1

    def test_does_not_cost_waiters_their_place(
        self, refusal: Callable[[], DatabaseError], monkeypatch: pytest.MonkeyPatch, waiting: Waiting
    ) -> None:
        held = hold(new(Proxy))
        waiting.start("one")
        threads, run, refused = list(waiting._threads.values()), dialect.run, threading.Event()

        def refuses(own: Any, *args: Any) -> Any:
            if threading.current_thread() is not threads[0]:
                return run(own, *args)
            refused.set()
            raise refusal()

        monkeypatch.setattr(dialect, "run", refuses)
        assert refused.wait(60)
        held.release()
        monkeypatch.setattr(dialect, "run", run)
        waiting.let_go("one")

    @pytest.mark.only("mysql", "postgresql")  # SQLite has no connection to lose
    def test_after_a_lost_connection_is_retried_until_the_outcome_is_known(
        self, refusal: Callable[[], DatabaseError]
    ) -> None:
        answers: list[Any] = [LOST[connection.vendor], refusal, lambda: None]

        def send() -> str:
            if (error := answers.pop(0)()) is not None:
                raise error
            return "done"

        assert retrying(connection, send) == "done"


def test_a_value_that_cannot_be_stored_is_an_error_of_the_value() -> None:
    wrapper: Any = SimpleNamespace(vendor="mysql")
    assert dialect.error_kind(wrapper, OperationalError(1366, "Incorrect string value")) is None


BY_NUMBER = {
    ErrorKind.CONFLICT: (1213, 1020, 3101),
    ErrorKind.BUSY: (1205, 3572, 3024),
    ErrorKind.DISCONNECTED: (2006, 2013, 1290, 1836, 4031, 3032, 3100, 1203, 1226),
    ErrorKind.LOGIN: (1044, 1045, 1049, 4151),
    ErrorKind.NOT_MIGRATED: (1054,),
    ErrorKind.REFUSED: (3098,),
    None: (2061,),
}
BY_STATE = {
    ErrorKind.CONFLICT: ("40001", "40P01"),
    ErrorKind.BUSY: ("55P03",),
    ErrorKind.DISCONNECTED: ("08006", "57P01", "25006"),
    ErrorKind.LOGIN: ("28P01",),
    ErrorKind.NOT_MIGRATED: ("42703",),
}
BY_TEXT = {
    "postgresql": {
        "the connection is closed": ErrorKind.DISCONNECTED,
        'password authentication failed for user "x"': ErrorKind.LOGIN,
        'role "x" is not permitted to log in': ErrorKind.LOGIN,
        'database "x" does not exist': ErrorKind.LOGIN,
    },
    "sqlite": {
        "unable to open database file": ErrorKind.LOGIN,
        "database is locked": ErrorKind.CONFLICT,
        "no such table: x": ErrorKind.NOT_MIGRATED,
        "no such column: x": ErrorKind.NOT_MIGRATED,
        "table x has no column named y": ErrorKind.NOT_MIGRATED,
        "disk I/O error": ErrorKind.REFUSED,
        'near "x": syntax error': None,
    },
}
MEANINGS: list[tuple[str, Exception, ErrorKind | None]] = [
    *(("mysql", OperationalError(one, "x"), kind) for kind, numbers in BY_NUMBER.items() for one in numbers),
    *(("postgresql", by_postgresql(state), kind) for kind, states in BY_STATE.items() for state in states),
    *(
        (vendor, OperationalError(text), kind)
        for vendor, texts in BY_TEXT.items()
        for text, kind in texts.items()
    ),
    ("mysql", ProgrammingError(2014, "Commands out of sync"), ErrorKind.DISCONNECTED),
    ("mysql", IntegrityError(3819, "Check constraint is violated"), None),
    ("mysql", ProgrammingError(1064, "You have an error in your SQL syntax"), None),
    ("mysql", IntegrityError(1062, "Duplicate entry"), None),
    ("mysql", LookupError(1213), None),
    ("postgresql", by_postgresql("42501", ProgrammingError), ErrorKind.REFUSED),
    ("postgresql", by_postgresql("42601", ProgrammingError), None),
]


@pytest.mark.parametrize(("vendor", "error", "meaning"), MEANINGS)
def test_meaning_of_errors(vendor: str, error: Exception, meaning: ErrorKind | None) -> None:
    wrapper: Any = SimpleNamespace(vendor=vendor)
    assert dialect.error_kind(wrapper, error) is meaning


def table() -> str:
    return connection.ops.quote_name(Proxy._meta.db_table)
