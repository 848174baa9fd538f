"""Who is interrupted in a first look, or has waited long enough, leaves nothing behind."""

import threading
from typing import Any

import pytest

from resourcepool.exceptions import AcquireTimeout
from resourcepool.models import Proxy, Ticket
from resourcepool.waiting import acquire, entering
from resourcepool.waiting.waiter import Waiter
from resourcepool.waiting.waiters import waiters
from tests.app.rows import columns, hold, new
from tests.eventually import InBackground, eventually
from tests.waiting.looks import HERE, Looks, asleep, request
from tests.waiting.waiters import given, ticket

pytestmark = pytest.mark.usefixtures("every_ticket_is_forgotten")


class TestLeaving:
    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, LookupError])
    def test_when_interrupted_in_a_look_takes_the_ticket_away(
        self, looks: Looks, error: type[BaseException]
    ) -> None:
        held = hold(new(Proxy))
        looks.raising(error())
        with pytest.raises(error):
            Proxy.pool.acquire(timeout=20)
        eventually(lambda: not Ticket.objects.exists())
        held.release()
        assert Proxy.pool.acquire(wait=False) is not None

    def test_when_interrupted_in_a_look_passes_on_what_was_given(self, looks: Looks) -> None:
        row, behind = new(Proxy), []
        held = hold(row)
        looks.raising(KeyboardInterrupt(), held.release, lambda: behind.append(ticket(Proxy)))
        with pytest.raises(KeyboardInterrupt):
            Proxy.pool.acquire(timeout=20)
        eventually(lambda: given(behind[0]) == [(row.pk, 3)])

    def test_when_interrupted_while_its_ticket_is_put_away_gives_back_what_was_given(
        self, looks: Looks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        row = new(Proxy)
        looks.do = hold(row).release
        used = waiters.used

        def interrupted(waiter: Waiter) -> None:
            used(waiter)
            raise KeyboardInterrupt

        monkeypatch.setattr(waiters, "used", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Proxy.pool.acquire(timeout=20)
        assert (columns(row)["fence"], columns(row)["holder"]) == (3, "")

    def test_when_a_signal_raises_the_callers_own_timeout_error(self, looks: Looks) -> None:
        hold(new(Proxy))
        looks.raising(TimeoutError("the caller's own"))
        with pytest.raises(TimeoutError, match="the caller's own"):
            Proxy.pool.acquire(timeout=20)
        eventually(lambda: not Ticket.objects.exists())

    def test_when_interrupted_while_it_is_served_gives_back_what_was_given(
        self, looks: Looks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        row = new(Proxy)
        looks.do = hold(row).release

        def interrupted(*_: Any, **__: Any) -> Any:
            raise KeyboardInterrupt

        monkeypatch.setattr(entering, "handles", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Proxy.pool.acquire(timeout=20)
        eventually(lambda: not Ticket.objects.exists())
        eventually(lambda: columns(row)["holder"] == "")

    @pytest.mark.usefixtures("the_first_look_is_far_away")
    def test_after_a_timeout_before_the_first_look_takes_the_ticket_away(self, looks: Looks) -> None:
        hold(new(Proxy))
        with pytest.raises(AcquireTimeout):
            Proxy.pool.acquire(timeout=0.05)
        assert HERE not in looks.by
        eventually(lambda: not Ticket.objects.exists())

    @pytest.mark.usefixtures("the_first_look_is_far_away")
    def test_after_a_stop_while_it_sleeps_takes_the_ticket_away(self, looks: Looks) -> None:
        hold(new(Proxy))
        stop = threading.Event()
        one = InBackground(lambda: acquire.acquire(Proxy.pool, request(), stop.is_set))
        eventually(asleep)
        stop.set()
        with pytest.raises(AcquireTimeout):
            one.result()
        assert one.name not in looks.by
        eventually(lambda: not Ticket.objects.exists())
