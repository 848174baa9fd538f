"""Ctrl-C or SystemExit in the middle of a clean-up: a process that lives on renews nothing that nobody has."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from resourcepool.leases.poller import poller
from resourcepool.leases.waiting import Waiter

from resourcepool.exceptions import BadOption
from resourcepool.leases import verbs
from resourcepool.leases.keeper import keeper
from resourcepool.models import Proxy
from resourcepool.resources import desk
from resourcepool.resources.lease import ResourceLease
from tests.app.rows import hold, new, several
from tests.resources.kept import kind


def interrupt(*_: Any) -> Any:
    raise KeyboardInterrupt


def kept() -> list[Any]:
    return [lease for lease in keeper.kept() if lease.model is Proxy]


def test_while_an_invalid_resource_is_put_away(monkeypatch: pytest.MonkeyPatch) -> None:
    new(Proxy)
    monkeypatch.setattr(ResourceLease, "_park", interrupt)
    with pytest.raises(KeyboardInterrupt):
        kind(is_valid=lambda self: False)()
    assert kept() == []


def test_while_a_resource_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    new(Proxy)
    crawler = kind(is_valid=lambda self: True)()
    monkeypatch.setattr(verbs, "release", interrupt)
    with pytest.raises(KeyboardInterrupt):
        crawler.close()
    crawler.close()
    assert kept() == []


def test_while_one_of_several_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    several(Proxy, 3)
    leases = Proxy.pool.acquire_many(3)
    monkeypatch.setattr(verbs, "release", interrupt)
    with pytest.raises(KeyboardInterrupt):
        desk._abandon(leases)
    assert kept() == []


class FailsInThatMoment(Future[Any]):
    """The line fails just when somebody wants to leave it."""

    def cancel(self) -> bool:
        if not self.done():
            self.set_exception(BadOption("count", 1, "the line is broken"))
        return super().cancel()


def test_of_a_wait_is_not_replaced_by_an_error_of_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    held = hold(new(Proxy))
    monkeypatch.setattr(desk, "_outcome", interrupt)
    monkeypatch.setattr(poller, "join", lambda request: Waiter(request, FailsInThatMoment()))
    with pytest.raises(KeyboardInterrupt):
        Proxy.pool.acquire(timeout=5)
    held.release()


@pytest.mark.parametrize(
    ("come_of_it", "granted"),
    [
        (lambda outcome: None, []),
        (lambda outcome: outcome.cancel(), []),
        (lambda outcome: outcome.set_exception(LookupError()), []),
        (lambda outcome: outcome.set_result(["a lease"]), ["a lease"]),
    ],
    ids=["nothing yet", "gave up", "failed", "served"],
)
def test_who_leaves_the_line_learns_what_it_was_granted_whatever_came_of_it(
    come_of_it: Callable[[Future[Any]], object], granted: list[Any]
) -> None:
    waiter = Waiter(Proxy.pool._desk._request(Proxy.pool._order(1, {})))
    come_of_it(waiter.outcome)
    assert Proxy.pool._desk._leave(waiter) == granted
    assert waiter.has_left
