"""How processes end, and what happens to their leases."""

import os
import signal
import sys
import threading
import time
from typing import Any

import pytest
from django.db import connection

import resourcepool
from resourcepool.exceptions import DatabaseUnavailable, LeaseReleased
from resourcepool.models import Proxy
from resourcepool.waiting import release, tickets
from tests.app.rows import busy_for, columns, new, now
from tests.concurrency.tickets import in_line
from tests.eventually import eventually
from tests.spawned import Spawner

LONG, SHORT = 60.0, 1.0


def end(how: str, ttl: float) -> None:
    """Hold two rows, one of them acquired in a finished thread, and end without releasing them."""
    Proxy.pool.acquire(ttl=ttl, cooldown=0)
    thread = threading.Thread(target=lambda: Proxy.pool.acquire(ttl=ttl))
    thread.start()
    thread.join()
    if "release_on_sigterm" in how:
        resourcepool.release_on_sigterm()
    print("held", flush=True)
    if how == "sys.exit":
        sys.exit(3)
    if how == "uncaught":
        raise LookupError("nobody catches this")
    if how == "returns":
        return
    time.sleep(60)


@pytest.fixture
def rows() -> list[Proxy]:
    return [new(Proxy), new(Proxy)]


@pytest.mark.parametrize(
    ("how", "sign", "code"),
    [
        *[("returns", 0, 0), ("sys.exit", 0, 3), ("uncaught", 0, 1)],
        *[("release_on_sigterm", signal.SIGTERM, 143), ("release_on_sigterm", signal.SIGINT, -2)],
    ],
)
def test_leases_are_released_at_exit_by_sigterm_only_if_configured(
    spawn: Spawner, rows: list[Proxy], how: str, sign: int, code: int
) -> None:
    child = spawn(end, how, LONG)
    if sign:
        child.line("held")
        child.send(sign)
    assert child.wait() == code, child.output
    for row in rows:
        assert (columns(row)["fence"], columns(row)["holder"]) == (2, "")
        assert busy_for(row) <= 0


def end_while_giving_back() -> None:
    """Get the signal to end during the statement of a release, which does not finish."""

    def interrupt(*_: Any, **__: Any) -> bool:
        raise SystemExit(3)

    setattr(release, "release", interrupt)  # noqa: B010 (for the type checker a module is not to be changed)
    with Proxy.pool.acquire(ttl=LONG, cooldown=0):
        pass


def test_a_release_interrupted_by_the_exit_is_completed_at_exit(spawn: Spawner) -> None:
    row = new(Proxy)
    child = spawn(end_while_giving_back)
    assert child.wait() == 3, child.output
    assert (columns(row)["fence"], columns(row)["holder"]) == (2, "")


SLOW = {"mysql": "SELECT SLEEP(2)", "postgresql": "SELECT pg_sleep(2)"}


def query_slowly() -> None:
    """Hold a row, release it in ``finally``, and get the signal during a statement."""
    resourcepool.release_on_sigterm()
    with connection.cursor() as cursor:  # the same connection as that of the lease
        lease = Proxy.pool.acquire(ttl=LONG)
        try:
            print("held", flush=True)
            cursor.execute(SLOW[connection.vendor])
        finally:
            lease.release()
            print("released", flush=True)


@pytest.mark.only("mysql", "postgresql")
@pytest.mark.parametrize(("sign", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, -2)])
def test_a_signal_during_a_statement_does_not_prevent_the_release(spawn: Spawner, sign: int, code: int) -> None:
    row = new(Proxy)
    child = spawn(query_slowly)
    child.line("held")
    eventually(lambda: runs(SLOW[connection.vendor]))
    child.send(sign)
    assert child.wait() == code, child.output
    assert "released" in child.output
    assert (columns(row)["fence"], columns(row)["holder"]) == (2, "")


def runs(sql: str) -> bool:
    """Whether a session runs this statement now."""
    look = {
        "mysql": "SELECT COUNT(*) FROM information_schema.processlist WHERE info = %s",
        "postgresql": "SELECT COUNT(*) FROM pg_stat_activity WHERE query = %s AND state = 'active'",
    }
    with connection.cursor() as cursor:
        cursor.execute(look[connection.vendor], [sql])
        return bool(cursor.fetchone()[0])


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL])
def test_leases_of_a_killed_process_expire_after_the_ttl(spawn: Spawner, rows: list[Proxy], sign: int) -> None:
    child = spawn(end, "sleeps", SHORT)
    child.line("held")
    child.send(sign)
    assert child.wait() == -sign
    left = columns(rows[0])
    assert left["holder"], "nobody released it"
    leases = Proxy.pool.acquire_many(2, timeout=SHORT + 5)
    assert leases
    assert [lease.fence for lease in leases] == [2, 2]
    assert now() >= left["busy_before"]


def wait_in_line() -> None:
    resourcepool.release_on_sigterm()
    print("waiting", flush=True)
    Proxy.pool.acquire(timeout=60)


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_a_waiter_that_is_asked_to_end_does_so_at_once(spawn: Spawner, sign: int) -> None:
    new(Proxy)
    with Proxy.pool.lease():
        child = spawn(wait_in_line)
        child.line("waiting")
        eventually(in_line)
        child.send(sign)
        child.wait()
        assert in_line() == [], child.output


def leave_while_a_ticket_is_being_taken(outages: int) -> None:
    resourcepool.release_on_sigterm()
    take, errors = tickets.take, [DatabaseUnavailable("not yet")] * outages

    def take_slowly(*args: Any) -> Any:
        if errors:
            raise errors.pop()
        pk = take(*args)
        print("taken", flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.3)  # the reply is on its way for longer than the end would take
        return pk

    setattr(tickets, "take", take_slowly)  # noqa: B010 (for the type checker a module is not to be changed)
    Proxy.pool.acquire(timeout=60)


@pytest.mark.parametrize("outages", [0, 1])
def test_a_ticket_inserted_during_the_interruption_is_removed(spawn: Spawner, outages: int) -> None:
    new(Proxy)
    with Proxy.pool.lease():
        child = spawn(leave_while_a_ticket_is_being_taken, outages)
        assert child.wait() == 143, child.output
        assert in_line() == [], child.output
        assert "taken" in child.output


def clean_up_slowly() -> None:
    """The clean-up takes longer than the ttl, so the keeper must continue meanwhile."""
    resourcepool.release_on_sigterm()
    with Proxy.pool.lease(ttl=SHORT) as lease:
        try:
            print("held", flush=True)
            time.sleep(600)
        finally:
            time.sleep(1.5 * SHORT)
            lease.ensure_held()
            lease.renew()
            print("cleaned up under the lease", flush=True)


def test_a_lease_is_held_until_the_clean_up_has_ended(spawn: Spawner) -> None:
    proxy = new(Proxy)
    child = spawn(clean_up_slowly)
    child.line("held")
    child.send(signal.SIGTERM)
    child.send(signal.SIGTERM)  # a second one does not interrupt it
    assert child.wait() == 128 + signal.SIGTERM
    assert "cleaned up under the lease" in child.output
    assert (columns(proxy)["fence"], columns(proxy)["holder"]) == (2, "")


def exit_twice() -> None:
    """An explicit release and the one at exit do not interfere."""
    lease = Proxy.pool.acquire(ttl=LONG)
    lease.release()
    successor = Proxy.pool.acquire(ttl=LONG, holder="the successor")
    try:
        lease.release()
    except LeaseReleased:
        print("refused", successor.fence, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_released_lease_is_not_released_again_at_exit(spawn: Spawner) -> None:
    row = new(Proxy)
    child = spawn(exit_twice)
    child.line("refused 3")
    child.wait()
    assert (columns(row)["fence"], columns(row)["holder"]) == (3, "the successor")
