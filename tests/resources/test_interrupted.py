"""Ctrl-C or SystemExit during a clean-up: leases without a handle are not renewed."""

from collections.abc import Callable
from typing import Any

import pytest

from resourcepool.db.threads import Outcome
from resourcepool.exceptions import BadOption
from resourcepool.leases.keeper import keeper
from resourcepool.models import Proxy, Ticket
from resourcepool.resources.lease import ResourceLease
from resourcepool.resources.pool import Pool
from resourcepool.waiting import acquire, assignment, release, tickets
from resourcepool.waiting.poll import Poller
from resourcepool.waiting.waiter import Waiter
from tests.app.rows import hold, new, several
from tests.eventually import eventually
from tests.resources.recording_resource import kind


def interrupt(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


def kept() -> list[Any]:
    return [lease for lease in keeper.leases() if lease.model is Proxy]


def test_while_an_invalid_resource_is_put_away(monkeypatch: pytest.MonkeyPatch) -> None:
    new(Proxy)
    monkeypatch.setattr(ResourceLease, "_store_quarantine", interrupt)
    with pytest.raises(KeyboardInterrupt):
        kind(is_valid=lambda self: False)()
    assert kept() == []


def test_while_a_resource_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    new(Proxy)
    crawler = kind(is_valid=lambda self: True)()
    monkeypatch.setattr(release, "release", interrupt)
    with pytest.raises(KeyboardInterrupt):
        crawler.close()
    crawler.close()
    assert kept() == []


def test_while_one_of_several_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    several(Proxy, 3)
    leases = Proxy.pool.acquire_many(3)
    monkeypatch.setattr(release, "release", interrupt)
    with pytest.raises(KeyboardInterrupt):
        acquire.release_quietly(leases)
    assert kept() == []


def test_while_the_second_of_several_is_put_into_a_handle(monkeypatch: pytest.MonkeyPatch) -> None:
    several(Proxy, 2)
    handle, made = Pool.handle, []

    def interrupted(*args: Any) -> Any:
        if made:
            raise KeyboardInterrupt
        made.append(True)
        return handle(*args)

    monkeypatch.setattr(Pool, "handle", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Proxy.pool.acquire_many(2, timeout=5)
    assert kept() == []


class FailsInThatMoment(Outcome):
    """Leaving the line fails."""

    def cancel(self) -> bool:
        self.fail(BadOption("count", 1, "the line is broken"))
        return super().cancel()


def waiter(outcome: Outcome) -> Waiter:
    return Waiter(Proxy.pool, "default", Proxy.pool.request(1, {"timeout": 5}), "me", None, outcome)


def test_of_a_wait_is_not_replaced_by_an_error_of_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Poller, "wait", interrupt)
    monkeypatch.setattr(acquire, "_enqueue", lambda *_: waiter(FailsInThatMoment()))
    with pytest.raises(KeyboardInterrupt):
        Proxy.pool.acquire(timeout=5)


def test_while_the_first_look_after_the_ticket_was_taken_leaves_the_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = hold(new(Proxy))
    monkeypatch.setattr(assignment, "assign_free_rows", interrupt)
    with pytest.raises(KeyboardInterrupt):
        Proxy.pool.acquire(timeout=5)
    monkeypatch.undo()
    eventually(lambda: not Ticket.objects.exists())
    held.release()


@pytest.mark.parametrize(
    ("come_of_it", "granted"),
    [
        (lambda outcome: None, []),
        (lambda outcome: outcome.cancel(), []),
        (lambda outcome: outcome.fail(LookupError()), []),
        (lambda outcome: outcome.serve(["a lease"]), ["a lease"]),
    ],
    ids=["nothing yet", "gave up", "failed", "served"],
)
def test_who_leaves_the_line_learns_what_it_was_granted_whatever_came_of_it(
    come_of_it: Callable[[Outcome], object], granted: list[Any]
) -> None:
    one = waiter(Outcome())
    come_of_it(one.outcome)
    assert acquire.leave(one) == granted
    assert one.is_done


def test_while_a_ticket_is_taken_leaves_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ticket is in the database, but its key has not arrived."""
    held, take = hold(new(Proxy)), tickets.take

    def interrupted(*args: Any) -> Any:
        take(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(tickets, "take", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Proxy.pool.acquire(timeout=5)
    eventually(lambda: not Ticket.objects.exists())
    held.release()
