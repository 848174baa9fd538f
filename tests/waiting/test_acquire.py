"""What ``acquire`` tries first, a claim or a ticket, and that both are correct."""

from time import monotonic
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from resourcepool.exceptions import AcquireTimeout, BadOption, DatabaseUnavailable
from resourcepool.leases import verbs
from resourcepool.models import Proxy, Ticket
from resourcepool.waiting import acquire, assignment, pacing, tickets
from resourcepool.waiting.models import pool_name
from resourcepool.waiting.pacing import FIRST_IN_LINE, pacing_of
from resourcepool.waiting.waiter import Waiter
from tests.app.rows import columns, hold, new, several, steal
from tests.eventually import InBackground, eventually
from tests.locking import locked
from tests.waiting.threads import Waiting, given, ticket


def has_waited() -> None:
    """Let the next caller expect to wait."""
    pacing_of(pool_name(Proxy), "default").served(0.1, monotonic(), was_woken=False)


def expects_to_wait() -> bool:
    return pacing_of(pool_name(Proxy), "default").waits_until > monotonic()


def words(sent: CaptureQueriesContext) -> list[str]:
    """Return the verb and table of each statement."""
    about = {"resourcepool_ticket": "ticket", "resourcepool_proxy": "row"}
    named = [next((name for table, name in about.items() if table in one["sql"]), "") for one in sent]
    return [name for name in named if name]


def test_a_free_row_is_claimed_without_a_ticket() -> None:
    new(Proxy)
    with CaptureQueriesContext(connection) as sent:
        lease: Any = Proxy.pool.acquire(timeout=5)
    assert words(sent) == ["row", "row"]
    assert lease._trust.valid_for == 60


@pytest.mark.usefixtures("removed_at_once")
def test_after_a_recent_wait_a_caller_enqueues_at_once_and_is_served_by_its_first_scan() -> None:
    row = new(Proxy)
    has_waited()
    with CaptureQueriesContext(connection) as sent:
        lease: Any = Proxy.pool.acquire(timeout=5)
    assert words(sent)[0] == "ticket"
    assert (lease.pk, columns(row)["fence"]) == (row.pk, 1)
    assert not expects_to_wait(), "the next one tries a claim again"
    lease.ensure_held()
    lease.renew()
    eventually(lambda: not Ticket.objects.exists())


def test_after_waiting_despite_many_free_rows_a_caller_claims_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise all callers would take tickets for free rows, as long as any of them does."""
    several(Proxy, FIRST_IN_LINE)
    monkeypatch.setattr(assignment, "_give_free", lambda *args: False)  # others gave them at that moment
    has_waited()
    with pytest.raises(AcquireTimeout):
        Proxy.pool.acquire(timeout=0.1)
    assert not expects_to_wait()


@pytest.mark.only("mysql", "postgresql")
def test_a_locked_row_does_not_hide_the_free_one_behind_it() -> None:
    """Otherwise each acquire would wait for its second check, as long as the row is locked."""
    first, second = several(Proxy, 2)
    has_waited()
    with locked(first):
        lease: Any = Proxy.pool.acquire(timeout=20)
    assert lease.pk == second.pk
    assert not expects_to_wait(), "it had to wait"


def test_several_rows_are_obtained_by_the_first_scan_too() -> None:
    rows = several(Proxy, 3)
    has_waited()
    leases: Any = Proxy.pool.acquire_many(3, timeout=5)
    assert {lease.pk for lease in leases} == {row.pk for row in rows}
    for lease in leases:
        lease.release()


def test_several_rows_of_which_one_has_expired_are_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may have given it some time ago."""
    rows, assign_free_rows, stolen = several(Proxy, 2), assignment.assign_free_rows, list[int]()

    def one_is_stolen_afterwards(*args: Any, **options: Any) -> Any:
        given = assign_free_rows(*args, **options)
        if not stolen:
            stolen.append(steal(rows[0]).fence)
        return given

    monkeypatch.setattr(assignment, "assign_free_rows", one_is_stolen_afterwards)
    has_waited()
    both = InBackground(lambda: Proxy.pool.acquire_many(2, timeout=20))
    (fence,) = eventually(lambda: stolen)
    verbs.release(connection, Proxy, rows[0].pk, fence, 0)
    fences = {lease.pk: lease.fence for lease in both.result()}
    assert fences[rows[0].pk] > fence
    assert fences[rows[1].pk] > 1, "released, and claimed again"


def test_a_first_scan_leaves_the_rows_due_to_earlier_waiters() -> None:
    several(Proxy, 2)
    in_front = ticket(Proxy)
    has_waited()
    lease: Any = Proxy.pool.acquire(timeout=5)
    assert not given(in_front), "whose owner scans itself"
    assert Proxy.objects.available().exclude(pk=lease.pk).count() == 1


def test_ctrl_c_just_after_the_ticket_was_taken_removes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    hold(new(Proxy))
    enqueue = acquire._enqueue

    def interrupted(*args: Any) -> Any:
        assert isinstance(enqueue(*args), Waiter)
        assert Ticket.objects.exists()
        raise KeyboardInterrupt

    monkeypatch.setattr(acquire, "_enqueue", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Proxy.pool.acquire(timeout=5)
    assert not Ticket.objects.exists()


def test_a_served_waiter_counts_as_having_waited(waiting: Waiting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "REMEMBERED", 60)
    held, look, checks = hold(new(Proxy)), tickets.look, list[Any]()

    def noted(*args: Any) -> Any:
        checks.append(look(*args))
        return checks[-1]

    monkeypatch.setattr(tickets, "look", noted)
    waiting.start("one")
    eventually(lambda: checks)
    held.release()
    waiting.let_go("one")
    assert expects_to_wait()


def test_more_than_there_is_takes_no_ticket() -> None:
    several(Proxy, 2)
    with pytest.raises(BadOption, match="at most 2"):
        Proxy.pool.acquire_many(3, timeout=5)
    assert not Ticket.objects.exists()


@pytest.mark.parametrize("options", [{"wait": False}, {"timeout": 0}])
def test_a_caller_that_does_not_wait_takes_no_ticket(options: dict[str, Any]) -> None:
    with CaptureQueriesContext(connection) as sent:
        try:
            assert Proxy.pool.acquire(**options) is None
        except AcquireTimeout:
            assert "timeout" in options
    assert not [one for one in sent if one["sql"].startswith("INSERT")]


def test_a_waiter_that_never_got_a_ticket_learns_why(monkeypatch: pytest.MonkeyPatch) -> None:
    hold(new(Proxy))

    def fails(*_: Any) -> Any:
        raise DatabaseUnavailable("database 'default': server has gone away")

    monkeypatch.setattr(tickets, "take", fails)
    with pytest.raises(AcquireTimeout, match="server has gone away"):
        Proxy.pool.acquire(timeout=0.3)


def test_a_waiter_without_a_ticket_gets_one_as_soon_as_possible(
    monkeypatch: pytest.MonkeyPatch, waiting: Waiting
) -> None:
    held, take, failures = hold(new(Proxy)), tickets.take, []

    def fails_at_first(*args: Any) -> Any:
        if len(failures) < 2:
            failures.append(args)
            raise DatabaseUnavailable("not now")
        return take(*args)

    monkeypatch.setattr(tickets, "take", fails_at_first)
    waiting.start("one")
    held.release()
    waiting.let_go("one")
