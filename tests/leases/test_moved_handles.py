"""``fix()`` moves a handle to another row while a renewal of the old row is under way."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from resourcepool.leases import keeper as keeping, verbs
from resourcepool.models import Proxy
from tests.app.rows import new
from tests.committed import Clock
from tests.eventually import InBackground

LASTS = 6.0  # seconds for which a row that was handed over is its waiter's, until it is renewed


def after(verb: Callable[..., Any], do: list[Callable[[], None]]) -> Callable[..., Any]:
    """Return ``verb``; the first time it has taken effect, ``do`` is done before anybody learns of it."""

    def slowly(*args: Any, **options: Any) -> Any:
        answer = verb(*args, **options)
        if do:
            do.pop()()
        return answer

    return slowly


def handed_over(lease: Any) -> Callable[[], None]:
    """Return what moves ``lease`` to another row, which is handed to it: for ``LASTS`` seconds, until it is renewed."""

    def move() -> None:
        InBackground(fix).result()

    def fix() -> None:
        lease.quarantine("bad")
        row = new(Proxy)
        grant = verbs.claim(connection, Proxy, row.pk, lease._terms)
        assert grant is not None
        other = Proxy.pool.handle("default", grant._replace(ttl=LASTS), lease._request)
        lease._become(other)

    return move


class TestAMovedHandle:
    def test_does_not_trust_its_new_row_for_longer_because_its_old_one_was_renewed_by_the_keeper(
        self, process_clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        new(Proxy)
        lease: Any = Proxy.pool.acquire(ttl=60)
        do = [handed_over(lease)]
        monkeypatch.setattr(verbs, "renew_unless_locked", after(verbs.renew_unless_locked, do))
        keeping.renew_together("default", [lease])
        assert not do
        assert lease.remaining <= LASTS

    def test_nor_by_another_thread(self, monkeypatch: pytest.MonkeyPatch) -> None:
        new(Proxy)
        lease: Any = Proxy.pool.acquire(ttl=60)
        monkeypatch.setattr(verbs, "renew", after(verbs.renew, [handed_over(lease)]))
        lease.renew()
        assert lease.remaining <= LASTS

    def test_is_not_lost_because_its_old_row_is(self, monkeypatch: pytest.MonkeyPatch) -> None:
        new(Proxy)
        lease: Any = Proxy.pool.acquire(ttl=60)
        do = [handed_over(lease)]
        monkeypatch.setattr(verbs, "live_fences", after(verbs.live_fences, do))
        monkeypatch.setattr(verbs, "renew_unless_locked", lambda *_: 0)
        keeping.renew_together("default", [lease])
        assert not do
        lease.ensure_held()
