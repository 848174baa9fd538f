"""The database is out of reach: from the start, in the middle of a lease, in the middle of waiting, or not migrated."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable, LeaseLost, NotMigrated
from resourcepool.models import Proxy
from tests.app.models import Bare, Ghost
from tests.app.rows import busy_for, columns, hold, new
from tests.committed import Clock
from tests.eventually import eventually
from tests.relay import Relay, relay
from tests.spawned import Spawner

on_a_server = pytest.mark.only("mysql", "postgresql")


@pytest.fixture
def between(database_url: str) -> Iterator[Relay]:
    with relay(database_url) as relayed:
        yield relayed


def say(*words: object) -> None:
    print(*words, flush=True)


def try_without_a_database() -> None:
    for options in ({"wait": False}, {"timeout": 1}, {"timeout": 0}):
        began = time.monotonic()
        try:
            Proxy.pool.acquire(**options)
        except (AcquireTimeout, DatabaseUnavailable) as error:
            say(type(error).__name__, round(time.monotonic() - began, 1), error)
    try:
        with Proxy.pool.lease(timeout=0.5):
            say("impossible")
    except AcquireTimeout:
        say("lease gave up")


@on_a_server
def test_at_the_start_is_a_clear_error_and_never_a_hang(spawn: Spawner, database_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    host = database_url.rpartition("@")[2].partition("/")[0]
    child = spawn(try_without_a_database, DATABASE_URL=database_url.replace(host, f"127.0.0.1:{port}"))
    said = child.succeed().splitlines()
    answers = [line.split(maxsplit=2) for line in said if line.startswith(("Acq", "Dat"))]
    assert [answer[0] for answer in answers] == ["DatabaseUnavailable", "AcquireTimeout", "AcquireTimeout"]
    assert all(float(answer[1]) < 4.5 for answer in answers)
    assert all("database 'default'" in answer[2] for answer in answers)
    assert "lease gave up" in said


def hold_through(ttl: float) -> None:
    """Hold a lease, and say every now and then whether it is still held."""
    lease = Proxy.pool.acquire(ttl=ttl)
    assert lease is not None
    say("holds")
    last = None
    while True:
        if lease.is_held != last:
            last = lease.is_held
            say("is held" if last else "is lost", lease.lost.is_set())
        if not last:
            break
        time.sleep(0.01)
    try:
        lease.ensure_held()
    except LeaseLost as lost:
        say(lost)
    with Proxy.pool.lease(timeout=20) as again:
        say("holds again", again.fence)


@on_a_server
@pytest.mark.parametrize("how", ["cut", "hang"])
def test_for_longer_than_the_ttl_is_a_loss_in_time_and_not_the_end(
    spawn: Spawner, between: Relay, how: str
) -> None:
    proxy = new(Proxy)
    child = spawn(hold_through, 1.5, DATABASE_URL=between.url)
    child.line("is held")
    getattr(between, how)()
    child.line("is lost", timeout=3)
    assert busy_for(proxy) > -0.1, "it stopped trusting itself before the database let go"
    child.line("not renewed within ttl=1.5 s")
    assert busy_for(proxy) < 1.5
    eventually(lambda: busy_for(proxy) < 0)
    between.mend()
    child.line("holds again 2", timeout=15)
    child.succeed()
    assert busy_for(proxy) <= 0


def wait_through() -> None:
    say("waits")
    lease = Proxy.pool.acquire(timeout=30)
    assert lease is not None
    say("was served", lease.fence)


@on_a_server
def test_while_waiting_in_line_is_waited_out(spawn: Spawner, between: Relay) -> None:
    held = hold(new(Proxy))
    child = spawn(wait_through, DATABASE_URL=between.url)
    child.line("waits")
    eventually(lambda: Proxy.pool.acquire(wait=False) is None)
    between.cut()
    time.sleep(0.5)
    held.release()
    between.mend()
    child.line("was served", timeout=15)
    child.succeed()


def acquire_and_release() -> None:
    lease = Proxy.pool.acquire(wait=False)
    say("acquired", lease.fence if lease else None)
    if lease:
        lease.release()
        say("released")


class TestTablesThatAreMissing:
    """On a database that was not migrated."""

    @pytest.mark.parametrize("options", [{}, {"wait": False}, {"timeout": 0}, {"strategy": "random"}])
    def test_say_what_to_do(self, options: dict[str, Any]) -> None:
        with pytest.raises(NotMigrated, match=r"run `manage.py migrate`"):
            Ghost.pool.acquire(**options)
        with pytest.raises(NotMigrated):
            Ghost.pool.acquire_many(2, **options)

    @pytest.mark.only("sqlite")
    def test_all_of_them(self, spawn: Spawner, tmp_path: Path) -> None:
        child = spawn(wait_through, DATABASE_URL=f"sqlite:///{tmp_path}/empty.sqlite3")
        assert child.wait() == 1
        assert "NotMigrated: database 'default': no such table" in child.output


@pytest.mark.only("sqlite")
def test_a_writer_that_does_not_end_costs_the_lease_and_not_the_keeper(
    process_clock: Clock, other: BaseDatabaseWrapper
) -> None:
    """On SQLite one open transaction keeps everybody else from writing."""
    lease = hold(new(Bare), ttl=60)
    with other.cursor() as cursor:
        cursor.execute("BEGIN IMMEDIATE")
        process_clock.advance(59)
        assert lease.lost.wait(5)
        cursor.execute("ROLLBACK")
    again = hold(new(Bare), ttl=60)
    process_clock.advance(25)
    eventually(lambda: again.due_at > process_clock(), within=8)


def test_a_transaction_that_cannot_commit_takes_the_claim_with_it() -> None:
    proxy = new(Proxy)
    with transaction.atomic():
        Proxy.pool.acquire(allow_in_transaction=True)
        transaction.set_rollback(True)
    assert columns(proxy)["fence"] == 0
