"""Forks: leases, sessions and threads stay with the parent."""

import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, connections, transaction

from resourcepool.db.background import own_connections
from resourcepool.exceptions import LeaseFromAnotherProcess
from resourcepool.hints import _expected
from resourcepool.history import recorder as recording
from resourcepool.leases.keeper import keeper
from resourcepool.models import Event, Proxy
from tests import child as bootstrap
from tests.app.models import Team
from tests.app.rows import busy_for, columns, new
from tests.eventually import InBackground, eventually
from tests.processes import forked
from tests.spawned import Spawner

TTL = 1.5
LONG = 60.0


def guard(lease: Any) -> None:
    with transaction.atomic(), lease.guard():
        pass


def in_child(lease: Any) -> None:
    """Allowed and forbidden calls in a forked child."""
    assert keeper.leases() == []
    assert not lease.is_held
    calls = (lease.ensure_held, lease.renew, lease.release, lease.guard().__enter__)
    for call in calls:
        with pytest.raises(LeaseFromAnotherProcess, match=str(os.getppid())):
            call()
    Team.objects.create(name="by the child")
    own = Proxy.pool.acquire(wait=False, ttl=TTL)
    assert own.pk != lease.pk
    eventually(lambda: own._trust.sent_at > own._trust.granted_at)  # it has a keeper of its own
    own.release()


def fork(how_the_child_ends: str) -> None:
    lease = Proxy.pool.acquire(ttl=TTL)
    Team.objects.create(name="by the parent, before")
    pid = os.fork()
    if pid == 0:
        try:
            in_child(lease)
        except BaseException:  # noqa: BLE001 (shown, and told by the code)
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        if how_the_child_ends == "_exit":
            os._exit(0)
        sys.exit(0)
    forked_at = lease._trust.sent_at
    assert os.waitpid(pid, 0)[1] == 0
    for _ in range(3):  # a connection whose socket the child had used would be out of step by now
        Team.objects.create(name="by the parent, after")
        assert Team.objects.order_by("pk").first().name == "by the parent, before"
    lease.ensure_held()
    eventually(lambda: lease._trust.sent_at > forked_at + TTL)  # its keeper goes on
    guard(lease)
    lease.renew()
    lease.release()
    print("fine", Team.objects.count(), flush=True)


@pytest.mark.parametrize("how", ["_exit", "sys.exit"])
def test_the_parents_connection_and_lease_outlive_a_child_that_used_the_database(
    spawn: Spawner, how: str
) -> None:
    rows = [new(Proxy), new(Proxy)]
    assert "fine 5" in spawn(fork, how).succeed()
    for row in rows:
        assert (columns(row)["fence"], columns(row)["holder"]) == (2, "")


def fork_while_events_wait() -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HISTORY": True}
    recording.EVERY = 0.1
    Proxy.pool.acquire().release()
    eventually(lambda: recording.recorder.is_idle)  # its background thread runs
    recording.EVERY = LONG
    lease = Proxy.pool.acquire(ttl=LONG)

    def in_child() -> None:
        recording.EVERY = 0.1
        assert recording.recorder.is_idle, "the parent writes its own"
        Proxy.pool.acquire(ttl=LONG).release()
        eventually(lambda: recording.recorder.is_idle)

    assert forked(in_child)
    recording.EVERY = 0.1
    lease.release()
    recording.recorder.flush()
    told = [event.what for event in Event.objects.exclude(pid=os.getpid())]
    assert told == ["released"], told
    assert Event.objects.filter(pid=os.getpid()).count() == 2
    print("fine", flush=True)


def test_each_process_writes_its_own_events_in_the_background(spawn: Spawner) -> None:
    for _ in range(2):
        new(Proxy)
    assert "fine" in spawn(fork_while_events_wait).succeed()


def ask(who: str) -> None:
    """Send many queries, each on a session of the pool."""

    def ask_some(thread: int) -> None:
        for number in range(100):
            question = f"{who} {thread} {number}"
            with connection.cursor() as cursor:
                cursor.execute("SELECT %s::text", [question])
                assert cursor.fetchone() == (question,)
            connection.close()

    for asking in [InBackground(ask_some, thread) for thread in range(4)]:
        asking.result()


def fork_with_a_pool() -> None:
    connection.settings_dict |= {
        "CONN_MAX_AGE": 0,
        "OPTIONS": {**connection.settings_dict["OPTIONS"], "pool": True},
    }
    ask("before")
    pid = os.fork()
    ask("parent" if pid else "child")
    with Proxy.pool.lease(timeout=20):
        pass
    if not pid:
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    print("fine", flush=True)


@pytest.mark.only("postgresql")
def test_a_child_has_its_own_session_pool(spawn: Spawner) -> None:
    new(Proxy)
    spawn(fork_with_a_pool).line("fine")


def fork_while_waiting() -> None:
    """A parent with a waiting thread; its child must neither wait for it nor serve it."""
    lease = Proxy.pool.acquire(ttl=LONG)
    waiting = InBackground(lambda: Proxy.pool.acquire(timeout=20, ttl=LONG))
    eventually(lambda: _expected)  # it looks, now and then, at its own ticket

    def in_child() -> None:
        assert Proxy.pool.acquire(wait=False) is None

    assert forked(in_child)
    lease.release()
    assert waiting.result().fence == 2
    print("fine", flush=True)


def test_a_waiting_parent_keeps_waiting(spawn: Spawner) -> None:
    row = new(Proxy)
    assert "fine" in spawn(fork_while_waiting).succeed()
    assert columns(row)["fence"] == 3


def fork_while_a_background_thread_talks() -> None:
    """A child inherits the state of the locks inside the driver's library."""
    talks, asked, told = threading.Event(), threading.Event(), []
    os.register_at_fork(before=asked.set)  # the one registered last runs first

    def talk() -> None:
        with own_connections() as own, own.turn:
            talks.set()
            asked.wait(10)
            time.sleep(0.1)  # goes on talking, for longer than a fork takes
            told.append("all")

    thread = InBackground(talk)
    talks.wait(10)
    assert forked(lambda: told.remove("all"))
    thread.result()
    with own_connections() as own, own.turn:
        print("fine", flush=True)


def test_a_fork_waits_for_statements_of_background_threads(spawn: Spawner) -> None:
    assert "fine" in spawn(fork_while_a_background_thread_talks).succeed()


def fork_while_a_background_thread_hangs() -> None:
    talks, end = threading.Event(), threading.Event()

    def talk() -> None:
        with own_connections() as own, own.turn:
            talks.set()
            end.wait(60)

    thread = InBackground(talk)
    talks.wait(10)
    assert forked(lambda: None)
    assert thread.is_alive(), "it has been waited for"
    end.set()
    thread.result()
    print("fine", flush=True)


def test_a_fork_waits_only_briefly_for_a_hanging_database(spawn: Spawner) -> None:
    assert "fine" in spawn(fork_while_a_background_thread_hangs).succeed()


def forget_to_release() -> None:
    Proxy.pool.acquire(ttl=LONG)
    Proxy.pool.acquire(ttl=LONG)


def work_in_a_child(method: str) -> None:
    """Hold one row here; a child of this kind acquires two others and does not release them."""
    lease = Proxy.pool.acquire(ttl=LONG)
    target = [f"{__name__}:{forget_to_release.__name__}", json.dumps([])]
    kind: Any = multiprocessing.get_context(method)
    process = kind.Process(target=bootstrap.main, args=target)
    process.start()
    process.join()
    assert process.exitcode == 0
    assert Proxy.objects.held().count() == 1, "free as soon as the child has ended"
    assert Proxy.objects.filter(fence=2, holder="").count() == 2
    lease.ensure_held()
    lease.release()
    print("fine", flush=True)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_unreleased_leases_of_a_multiprocessing_child_are_released_at_its_exit(
    spawn: Spawner, method: str
) -> None:
    rows = [new(Proxy) for _ in range(3)]
    assert "fine" in spawn(work_in_a_child, method).succeed()
    for row in rows:
        assert columns(row)["fence"] == 2
        assert busy_for(row) <= 0


def fork_and_close() -> None:
    """The parent closes its connection while its child runs: without the child, SQLite would remove the log."""
    assert Proxy.objects.count() == 2
    closed, closing = os.pipe()
    begun, beginning = os.pipe()
    if os.fork() == 0:
        Proxy.pool.acquire(ttl=LONG)
        os.write(beginning, b"!")
        os.read(closed, 1)
        Proxy.pool.acquire(ttl=LONG)
        print("child holds both", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    os.read(begun, 1)
    connections.close_all()
    os.write(closing, b"!")
    os.wait()


def test_leases_of_a_child_are_visible_after_the_parent_has_closed(spawn: Spawner) -> None:
    rows = [new(Proxy), new(Proxy)]
    connections.close_all()  # only the parent and its child have the database open
    assert "child holds both" in spawn(fork_and_close).succeed()
    for row in rows:
        assert columns(row)["fence"] == 1
    assert Proxy.pool.acquire(wait=False) is None
