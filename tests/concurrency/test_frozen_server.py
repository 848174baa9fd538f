"""A frozen database server accepts connections and statements, and never replies. No call waits for ever.

On MariaDB and MySQL, the recommended connection options see to that, on PostgreSQL the package itself.
"""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, OperationalError, connection, transaction

from resourcepool.exceptions import AcquireTimeout, DatabaseUnavailable, ResourcePoolError
from resourcepool.models import Proxy
from resourcepool.safety.doctor import examine
from tests.app.models import Team
from tests.app.rows import several
from tests.concurrency.stoppable_server import GO, Server, say
from tests.connection_options import short_waits, with_options
from tests.spawned import Spawner

pytestmark = pytest.mark.only("mysql", "postgresql")

LIMIT = 4  # seconds
COMES_BACK = 45  # seconds at most for all calls together; each has its own limit, which is much shorter


def limited(server: Server) -> str:
    return with_options(server.url, **short_waits(LIMIT))


def ask_the_doctor(lease: Any) -> None:
    (finding,) = examine("default", write=False).findings
    assert finding.code == "W020"
    raise DatabaseUnavailable(finding.message)


CALLS: dict[str, Callable[[Any], object]] = {
    "acquire": lambda lease: Proxy.pool.acquire(timeout=2),
    "acquire_many": lambda lease: Proxy.pool.acquire_many(2, timeout=2),
    "aacquire": lambda lease: asyncio.run(Proxy.pool.aacquire(timeout=2)),
    "without waiting": lambda lease: Proxy.pool.acquire(wait=False),
    "resource": lambda lease: lease.resource,
    "renew": lambda lease: lease.renew(),
    "release": lambda lease: lease.release(),
    "quarantine": lambda lease: lease.quarantine("smells"),
    "hand_over": lambda lease: lease.hand_over("somebody else"),
    "adopt": lambda lease: Proxy.pool.adopt(lease.pk, 10_000),
}
CALLS["doctor"] = ask_the_doctor
ERRORS = (AcquireTimeout.__name__, DatabaseUnavailable.__name__, "OperationalError")


def call_all(connected: bool) -> None:
    """Make each call in its own thread once the server is frozen; print the results."""
    signal.pthread_sigmask(signal.SIG_BLOCK, GO)
    is_frozen = threading.Event()

    def call(name: str, lease: Any, ready: threading.Barrier) -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(connection.close)
            if connected:
                connection.ensure_connection()
            ready.wait()
            is_frozen.wait()
            try:
                CALLS[name](lease)
            except (ResourcePoolError, DatabaseError) as error:
                say(f"{name}: {type(error).__name__}: {error}")
            else:
                say(f"{name}: came back")

    leases = Proxy.pool.acquire_many(len(CALLS), ttl=300, timeout=20)
    ready = threading.Barrier(len(CALLS) + 1)
    for name, lease in zip(CALLS, leases, strict=True):
        threading.Thread(target=call, args=(name, lease, ready), daemon=True).start()
    ready.wait()
    print("ready", flush=True)
    signal.sigwait(GO)
    is_frozen.set()
    for thread in threading.enumerate():
        if thread.name.startswith("Thread-"):
            thread.join()
    print("all came back", flush=True)


@pytest.mark.parametrize("connected", [True, False], ids=["in the middle", "on connecting"])
def test_every_call_returns_and_the_process_exits(spawn: Spawner, server: Server, connected: bool) -> None:
    several(Proxy, len(CALLS) + 3)
    child = spawn(call_all, connected, DATABASE_URL=limited(server))
    child.line("ready")
    server.freeze()
    child.send(signal.SIGUSR2)
    child.line("all came back", timeout=COMES_BACK)
    assert child.wait(COMES_BACK) == 0, child.output
    told = dict(line.split(": ", 2)[:2] for line in child.lines if line.split(": ")[0] in CALLS)
    assert set(told) == set(CALLS)
    assert {name: error for name, error in told.items() if error.strip() not in ERRORS} == {}, child.output


def guard() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, GO)
    lease = Proxy.pool.acquire(ttl=300)
    try:
        with transaction.atomic():
            Team.objects.create(name="written before")
            say("inside")
            signal.sigwait(GO)
            with lease.guard():
                say("never")
    except OperationalError:
        say("guard came back")


def test_guard_and_its_transaction_return(spawn: Spawner, server: Server) -> None:
    several(Proxy, 1)
    child = spawn(guard, DATABASE_URL=limited(server))
    child.line("inside")
    server.freeze()
    child.send(signal.SIGUSR2)
    child.line("guard came back", timeout=COMES_BACK)
    assert child.wait(COMES_BACK) == 0, child.output
    server.thaw()
    assert not Team.objects.exists()


def survive() -> None:
    """Lose one lease while the server is frozen, and keep others when it replies again."""
    signal.pthread_sigmask(signal.SIG_BLOCK, GO)
    lease, other = Proxy.pool.acquire_many(2, ttl=300)
    say("held")
    signal.sigwait(GO)
    with contextlib.suppress(DatabaseUnavailable):
        lease.release()
    say("came back")
    signal.sigwait(GO)
    other.renew()
    other.release()
    with Proxy.pool.lease(timeout=20):
        say("goes on")


def test_the_process_continues_when_the_server_does(spawn: Spawner, server: Server) -> None:
    several(Proxy, 3)
    child = spawn(survive, DATABASE_URL=limited(server))
    child.line("held")
    server.freeze()
    child.send(signal.SIGUSR2)
    child.line("came back", timeout=COMES_BACK)
    server.thaw()
    child.send(signal.SIGUSR2)
    child.line("goes on", timeout=COMES_BACK)
    assert child.wait() == 0, child.output
