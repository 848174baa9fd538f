"""A caller that is interrupted or times out during its first checks leaves nothing behind."""

import threading
from typing import Any

import pytest

from resourcepool.exceptions import AcquireTimeout
from resourcepool.models import Proxy, Ticket
from resourcepool.waiting import acquire, enqueue
from resourcepool.waiting.waiter import Waiter
from resourcepool.waiting.waiters import waiters
from tests.app.rows import columns, hold, new
from tests.eventually import InBackground, eventually
from tests.waiting.first_checks import HERE, CheckRecorder, asleep, request
from tests.waiting.threads import given, ticket

pytestmark = pytest.mark.usefixtures("forgotten_tickets")


class TestLeaving:
    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, LookupError])
    def test_when_interrupted_in_a_check_removes_the_ticket(
        self, checks: CheckRecorder, error: type[BaseException]
    ) -> None:
        held = hold(new(Proxy))
        checks.raising(error())
        with pytest.raises(error):
            Proxy.pool.acquire(timeout=20)
        eventually(lambda: not Ticket.objects.exists())
        held.release()
        assert Proxy.pool.acquire(wait=False) is not None

    def test_when_interrupted_in_a_check_passes_its_row_on(self, checks: CheckRecorder) -> None:
        row, behind = new(Proxy), []
        held = hold(row)
        checks.raising(KeyboardInterrupt(), held.release, lambda: behind.append(ticket(Proxy)))
        with pytest.raises(KeyboardInterrupt):
            Proxy.pool.acquire(timeout=20)
        eventually(lambda: given(behind[0]) == [(row.pk, 3)])

    def test_when_interrupted_during_the_removal_of_its_ticket_releases_its_row(
        self, checks: CheckRecorder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        row = new(Proxy)
        checks.do = hold(row).release
        used = waiters.used

        def interrupted(waiter: Waiter) -> None:
            used(waiter)
            raise KeyboardInterrupt

        monkeypatch.setattr(waiters, "used", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Proxy.pool.acquire(timeout=20)
        assert (columns(row)["fence"], columns(row)["holder"]) == (3, "")

    def test_when_a_signal_raises_the_callers_own_timeout_error(self, checks: CheckRecorder) -> None:
        hold(new(Proxy))
        checks.raising(TimeoutError("the caller's own"))
        with pytest.raises(TimeoutError, match="the caller's own"):
            Proxy.pool.acquire(timeout=20)
        eventually(lambda: not Ticket.objects.exists())

    def test_when_interrupted_during_the_delivery_releases_its_row(
        self, checks: CheckRecorder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        row = new(Proxy)
        checks.do = hold(row).release

        def interrupted(*_: Any, **__: Any) -> Any:
            raise KeyboardInterrupt

        monkeypatch.setattr(enqueue, "make_handles", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Proxy.pool.acquire(timeout=20)
        eventually(lambda: not Ticket.objects.exists())
        eventually(lambda: columns(row)["holder"] == "")

    @pytest.mark.usefixtures("distant_first_check")
    def test_after_a_timeout_before_the_first_look_takes_the_ticket_away(self, checks: CheckRecorder) -> None:
        hold(new(Proxy))
        with pytest.raises(AcquireTimeout):
            Proxy.pool.acquire(timeout=0.05)
        assert HERE not in checks.by
        eventually(lambda: not Ticket.objects.exists())

    @pytest.mark.usefixtures("distant_first_check")
    def test_after_a_stop_while_it_sleeps_takes_the_ticket_away(self, checks: CheckRecorder) -> None:
        hold(new(Proxy))
        stop = threading.Event()
        one = InBackground(lambda: acquire.acquire(Proxy.pool, request(), stop.is_set))
        eventually(asleep)
        stop.set()
        with pytest.raises(AcquireTimeout):
            one.result()
        assert one.name not in checks.by
        eventually(lambda: not Ticket.objects.exists())
