"""Models with a line per name: locks do not affect each other, and only the first waiters of a process are checked."""

import dataclasses
import math
from typing import Any

import pytest
from django.db import connection

from resourcepool.clock import monotonic
from resourcepool.leases.terms import Request
from resourcepool.locks import Lock
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import Ticket
from resourcepool.waiting import tickets
from resourcepool.waiting.models import line_name
from resourcepool.waiting.pacing import FIRST_IN_LINE, pacing_of
from resourcepool.waiting.poll import Poller
from resourcepool.waiting.release import release_once
from resourcepool.waiting.waiter import Waiter
from tests.app.rows import claim
from tests.committed import Clock
from tests.waiting.loop_turns import leases, look

HELD = "held"


def request(name: str, priority: int = 0) -> Request:
    lock = Lock(name)
    asked = lock._request(60.0, type("Nobody", (), {"_when_lost": None})())  # type: ignore[arg-type]
    return dataclasses.replace(asked, priority=priority)


def join(line: Poller, name: str, priority: int = 0) -> Waiter:
    waiter = Waiter(Lock(name), "default", request(name, priority), "me")
    waiter.set_ticket(tickets.take(connection, LockRow, waiter.request, "me"))
    line.turns.waiters[waiter] = None
    return waiter


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The tickets of each check."""
    seen: list[list[int]] = []
    usual = tickets.look

    def note(connection: Any, pks: Any) -> Any:
        seen.append(list(pks))
        return usual(connection, pks)

    monkeypatch.setattr(tickets, "look", note)
    return seen


def locked(name: str) -> tuple[LockRow, int]:
    row = LockRow.objects.create(pk=name)
    grant = claim(row, HELD)
    assert grant is not None
    return row, grant.fence


def test_only_the_first_tickets_of_each_name_are_checked(line: Poller, looked_at: list[list[int]]) -> None:
    locked("a"), locked("b")
    a = [join(line, "a") for _ in range(FIRST_IN_LINE + 2)]
    b = [join(line, "b") for _ in range(FIRST_IN_LINE + 2)]
    look(line)
    expected = {one.ticket.pk for waiters in (a, b) for one in waiters[:FIRST_IN_LINE] if one.ticket}
    assert set(looked_at[0]) == expected
    assert all(one.next_look < math.inf for one in a + b)


def test_the_better_priority_is_among_the_first(line: Poller, looked_at: list[list[int]]) -> None:
    locked("a")
    for _ in range(FIRST_IN_LINE):
        join(line, "a")
    writer = join(line, "a", priority=-1)
    look(line)
    assert writer.ticket is not None
    assert writer.ticket.pk in looked_at[0]


def test_when_a_waiter_is_served_the_next_are_checked_at_once(line: Poller, looked_at: list[list[int]]) -> None:
    row, fence = locked("a")
    waiters = [join(line, "a") for _ in range(FIRST_IN_LINE + 1)]
    assert release_once(connection, LockRow, row.pk, fence)
    look(line)
    assert sum(one.is_done for one in waiters) == 1
    last = waiters[-1].ticket
    assert last is not None
    assert last.pk in looked_at[1]


def test_a_release_serves_only_its_own_line(line: Poller) -> None:
    row, fence = locked("a")
    locked("b")
    other, mine = join(line, "b"), join(line, "a")
    assert release_once(connection, LockRow, row.pk, fence)
    look(line)
    (lease,) = leases(mine)
    assert (lease.pk, lease.fence) == ("a", fence + 1)
    assert not other.is_done


def test_names_with_a_common_prefix_have_separate_lines(line: Poller) -> None:
    row, fence = locked("a")
    locked("a:b"), locked("A")
    others = [join(line, "a:b"), join(line, "A")]
    assert release_once(connection, LockRow, row.pk, fence)
    look(line)
    assert not any(one.is_done for one in others)
    row.refresh_from_db()
    assert row.holder == ""


def test_a_wait_for_one_lock_does_not_affect_another(line: Poller) -> None:
    pacing_of(line_name(LockRow, "a"), "default").served(1.0, monotonic(), was_woken=False)
    assert pacing_of(line_name(LockRow, "a"), "default").waits_until > monotonic()
    assert pacing_of(line_name(LockRow, "b"), "default").waits_until < monotonic()


def test_pauses_count_from_when_the_line_last_moved(line: Poller, process_clock: Clock) -> None:
    """Otherwise a longer line would be slower."""
    row, fence = locked("a")
    first, second = join(line, "a"), join(line, "a")
    process_clock.advance(50)
    assert release_once(connection, LockRow, row.pk, fence)
    look(line)
    assert first.is_done or second.is_done
    waits = second if first.is_done else first
    process_clock.advance(0.1)
    waits.set_next_look(process_clock())
    assert waits.next_look - process_clock() < 0.1


def test_a_waiter_creates_a_removed_row_again(line: Poller, process_clock: Clock) -> None:
    waiter = join(line, "a")
    waiter.next_scan = 0.0
    look(line)
    process_clock.advance(3)
    look(line)
    assert LockRow.objects.get().pk == "a"
    process_clock.advance(3)
    look(line)
    assert leases(waiter)[0].pk == "a"


def dies(pool: str) -> None:
    Ticket.objects.create(pool=pool, holder="dead", asked_at="2000-01-01T00:00:00+00:00")


def test_expired_tickets_of_all_names_are_removed() -> None:
    for name in ("a", "B", "%", "_", "\U0001f600", "\U0010fffd", "日😀"):
        dies(line_name(LockRow, name))
    assert len(tickets.expired_for(connection, LockRow, 60)) == 7


def test_tickets_of_another_kind_are_not_included() -> None:
    class Kind:
        line_per_name = True

    Kind._meta = Kind.concrete_model = Kind  # type: ignore[attr-defined]
    Kind.label_lower = "my_app.kind%"  # type: ignore[attr-defined]
    dies("my_app.kind%:a")
    for other in ("myXapp.kind%:a", "my_app.kinds:a", "MY_APP.KIND%:a", "my_app.kind%", "my_app.kind%;"):
        dies(other)
    (dead,) = tickets.expired_for(connection, Kind, 60)  # type: ignore[arg-type]
    assert Ticket.objects.get(pk=dead).pool == "my_app.kind%:a"
