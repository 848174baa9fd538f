"""Fixtures for tests with committed rows, visible to threads, processes and second connections.

A test on committed rows could use pytest-django's ``transactional_db``; that empties every table of the project
and fills some of them again after each test. Here only the tables that these tests write to are emptied.
"""

import itertools
import threading
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.contrib.contenttypes.models import ContentType
from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.test import TestCase, TransactionTestCase
from pytest_django import DjangoDbBlocker

from resourcepool import clock
from resourcepool.db import background, threads
from resourcepool.db.dialect import statement
from resourcepool.hints import _expected
from resourcepool.leases import free_rows, keeper as keeping, lease, renewal, verbs
from resourcepool.locks.channels.models import Channel as ChannelRow, Message as MessageRow
from resourcepool.models import Dispenser, DispenserTask, Event, Move, Queue, QueueGroup, Topic
from resourcepool.queues.serving import (
    held_queue,
    membership,
    registration,
    server,
    snapshot as looking_at_queues,
)
from resourcepool.resources import pool, source
from resourcepool.waiting import (
    acquire,
    assignment,
    handover,
    pacing,
    poll,
    release,
    source as waiting_source,
    tickets,
    turn,
    waiter,
)
from tests.app.models import Team
from tests.app.rows import leased_models
from tests.eventually import eventually

OTHERS = (Event, Team, Queue, Move, QueueGroup, DispenserTask, Dispenser, Topic, ChannelRow, MessageRow)
USERS = (LogEntry, User.user_permissions.through, User.groups.through, User)


@pytest.fixture
def transactional_db(
    request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """Access to the database, without a transaction around the test; Django's TestCase keeps its own."""
    if isinstance(request.instance, TestCase):
        yield
        return
    with django_db_blocker.unblock():
        yield
        forget_everything()
        remove_all_rows([*leased_models(), *OTHERS, *USERS])
        connection.close_if_unusable_or_obsolete()


def remove_all_rows(models: Sequence[Any]) -> None:
    """Empty these tables; one statement asks which are not empty, for most of them a test has not touched."""
    quoted = [connection.ops.quote_name(model._meta.db_table) for model in models]
    with connection.cursor() as cursor:
        cursor.execute("SELECT " + ", ".join(f"EXISTS (SELECT 1 FROM {table})" for table in quoted))
        has_rows = cursor.fetchone()
    for model in itertools.compress(models, has_rows):
        model._base_manager.all()._raw_delete("default")


def remove_rows_of_all_tables(case: TransactionTestCase) -> None:
    """Instead of Django's ``flush`` after a test: that empties all tables, and makes types and permissions again."""
    kept = (ContentType, Permission)
    models = [one for one in apps.get_models(include_auto_created=True) if one not in kept]
    with connection.constraint_checks_disabled(), transaction.atomic():
        remove_all_rows([one for one in models if one._meta.managed and not one._meta.proxy])


def forget_everything() -> None:
    """Leave no lease and no waiter to the next test."""
    for poller in list(poll._pollers.values()):
        forget_waiters(poller)
    pacing._lines.clear()
    assignment._returned_at.clear()  # by a clock that a test may have moved
    _expected.clear()
    for model in leased_models():
        if isinstance(one := getattr(model, "pool", None), pool.Pool):
            one._last_seen._free.clear()
    for one in keeping.keeper.unreleased():
        keeping.keeper.remove(one)
    keeping.keeper._unavailable.clear()


def forget_waiters(poller: poll.Poller) -> None:
    """Cancel all waiters, and wait until their threads have left; its background thread stays for the next test."""
    turns = poller.turns
    for one in list(turns.waiters):
        one.outcome.cancel()
    poller._for_tasks.wake()
    eventually(lambda: not any(isinstance(one, waiter.Waiter) for one in list(poller._threads)))
    for memory in (turns.waiters, turns.used, turns._noticed, turns._pruned_at):
        memory.clear()
    poller.db_error, poller._off_until = None, 0.0
    poller._for_tasks.wake()  # or it would keep its session


@pytest.fixture
def other(transactional_db: None) -> Iterator[BaseDatabaseWrapper]:
    """A second connection to the same database."""
    connection = connections.create_connection("default")
    yield connection
    connection.close()


class Clock:
    """This process's own clock, as far as the package reads it; ``advance`` moves it without waiting."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self.stands_at: float | None = None

    def __call__(self) -> float:
        return (clock.monotonic() if self.stands_at is None else self.stands_at) + self.ahead

    def stop(self) -> None:
        """From now on only ``advance`` moves it, however slow the machine is."""
        self.stands_at = clock.monotonic()

    def advance(self, seconds: float) -> None:
        self.ahead += seconds
        wake_keeper()
        for poller in list(poll._pollers.values()):
            for wake in list(poller._threads.values()):
                wake()


def wake_keeper() -> None:
    for routine in list(keeping.keeper._routines.values()):
        routine.wake()
    keeping.keeper._watch.wake()


@pytest.fixture
def process_clock(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Clock:
    moved = Clock()
    of_leases = (free_rows, keeping, lease, renewal, verbs)
    of_waiting = (acquire, assignment, handover, waiting_source, poll, release, tickets, turn, waiter)
    of_queues = (held_queue, looking_at_queues, membership, registration, server)
    of_database = (background, threads)
    for module in (*of_leases, *of_database, source, *of_waiting, *of_queues):
        monkeypatch.setattr(module, "monotonic", moved)
    return moved


class Statement(NamedTuple):
    """One SQL statement, and the thread that sent it."""

    thread: str
    sql: str


@pytest.fixture
def by_name(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """On MariaDB what this thread sends is prepared at its first use, as usually what is sent often is."""
    made: list[statement.Session] = []

    class AtOnce(statement.Session):
        prepare_after: ClassVar[int] = 0

        def __init__(self, *given: Any, **options: Any) -> None:
            super().__init__(*given, **options)
            made.append(self)

    monkeypatch.setattr(statement, "Session", AtOnce)
    connections["default"].__dict__.pop(statement.SESSION, None)
    yield
    for one in made:
        one.close()


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[Statement]:
    """Every statement that any thread of this process sends from now on."""
    sent: list[Statement] = []
    execute = CursorWrapper.execute

    def record(self: CursorWrapper, sql: Any, params: Any = None) -> Any:
        sent.append(Statement(threading.current_thread().name, str(sql)))
        return execute(self, sql, params)

    send = statement.send

    def record_sent(connection: Any, text: str, params: Any) -> Any:
        sent.append(Statement(threading.current_thread().name, text))
        return send(connection, text, params)

    monkeypatch.setattr(CursorWrapper, "execute", record)
    monkeypatch.setattr(statement, "send", record_sent)
    return sent
