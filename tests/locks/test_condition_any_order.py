"""Whoever waits, notifies, is late or dies in whatever order: a condition behaves like its model.

Tickets, notifications and looks are the real ones, in this thread: a ``Poller`` whose turns the machine takes,
one for each process.
"""

from collections.abc import Callable
from typing import Any

from django.db import connection
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from resourcepool.db.dialect import MicrosUntil
from resourcepool.locks import Condition, Lock, notifications
from resourcepool.locks.notifications import consume
from resourcepool.models import ConditionWaiter, Ticket
from resourcepool.waiting import tickets
from resourcepool.waiting.poll import Poller
from resourcepool.waiting.waiter import Waiter
from tests.app.rows import expire
from tests.state_machines import check

NAME, FOREVER = "orders", 3_600.0  # seconds: nothing lapses because the machine is slow


class One:
    """Somebody who waits, in a process of its own, and what the model says of it."""

    def __init__(self) -> None:
        source = Condition(Lock(NAME, ttl=FOREVER))
        request = source._wait_request(1_000)
        self.waiter = Waiter(source, "default", request, request.terms.holder)
        self.waiter.set_ticket(tickets.take(connection, ConditionWaiter, request, self.waiter.holder))
        self.pk = self.waiter.ticket.pk if self.waiter.ticket else 0
        self.poller = Poller("default")
        self.poller.turns.waiters[self.waiter] = None
        self.is_notified = self.has_lapsed = False

    def turn(self) -> None:
        self.waiter.next_scan = 0.0  # each turn passes on what the dead have left
        self.poller.turns._noticed[self.pk] = None
        self.poller.turns.take()

    @property
    def is_over(self) -> bool:
        return self.waiter.is_done


class ACondition(RuleBasedStateMachine):
    """Waiters in the order in which they came, and who of them has a notification."""

    def __init__(self) -> None:
        super().__init__()
        Ticket.objects.all().delete()
        ConditionWaiter.objects.all().delete()
        self.waiting: list[One] = []  # alive, and with a place in line or a notification of its own
        self.lost = 0  # notifications whose waiter died, which wait for the next one in line

    @property
    def in_line(self) -> list[One]:
        return [one for one in self.waiting if not one.is_notified and not one.has_lapsed]

    @initialize(count=st.integers(1, 4))
    def come(self, count: int) -> None:
        self.waiting = [One() for _ in range(count)]

    @rule()
    @precondition(lambda self: len(self.waiting) < 6)
    def wait(self) -> None:
        self.waiting.append(One())

    @rule()
    @precondition(lambda self: self.waiting)
    def notify_all(self) -> None:
        self.notify(notifications.ALL_WAITERS)

    @rule(most=st.integers(1, 3))
    @precondition(lambda self: self.waiting)
    def notify(self, most: int) -> None:
        chosen = self.in_line[:most]
        assert notifications.notify(connection, ConditionWaiter, NAME, most) == len(chosen)
        for one in chosen:
            one.is_notified = True

    @rule(data=st.data())
    @precondition(lambda self: self.waiting)
    def look(self, data: st.DataObject) -> None:
        """It looks at its ticket: what it was given is its own, and nothing else is."""
        one = data.draw(st.sampled_from(self.waiting))
        one.turn()
        self.nothing_is_lost()  # if it was its turn to look at free ones, too, it has passed them on
        one.turn()  # who has lost the place learns of it, and then leaves
        if one.is_notified or one.has_lapsed:
            self._goes_on(one)
            return
        assert not one.is_over

    @rule(data=st.data())
    @precondition(lambda self: self.waiting)
    def be_late(self, data: st.DataObject) -> None:
        """Its time is up: it was notified before, or has left."""
        one = data.draw(st.sampled_from(self.waiting))
        one.waiter.is_late = True
        one.turn()
        one.turn()
        if one.is_notified:
            self._goes_on(one)
            return
        assert one.waiter.outcome.is_cancelled or (one.has_lapsed and one.waiter.outcome.result() == [])
        self.waiting.remove(one)

    @rule(data=st.data())
    @precondition(lambda self: self.waiting)
    def die(self, data: st.DataObject) -> None:
        """Killed: what it has runs out."""
        one = data.draw(st.sampled_from(self.waiting))
        self.waiting.remove(one)
        self._run_out(one)

    @rule(data=st.data())
    @precondition(lambda self: self.waiting)
    def stand_still(self, data: st.DataObject) -> None:
        """For longer than its place lasts: it will go on, and what it was given passes to the next."""
        one = data.draw(st.sampled_from(self.waiting))
        if not one.has_lapsed:
            self._run_out(one)
            one.has_lapsed, one.is_notified = True, False

    def _run_out(self, one: One) -> None:
        if one.is_notified:
            given = ConditionWaiter.objects.filter(holder=one.waiter.holder)
            expire(given.get())
            self.lost += 1
        ticket = Ticket.objects.filter(pk=one.pk).first()
        if ticket is not None:
            expire(ticket)

    def _goes_on(self, one: One) -> None:
        """Use what it has; who has lapsed may have none, and goes on all the same."""
        notified = one.waiter.outcome.result()
        assert len(notified) == one.is_notified
        consume(notified)
        self.waiting.remove(one)

    @invariant()
    def nothing_is_lost(self) -> None:
        """Each notification belongs to one who goes on with it, or waits for the next one in line, if there is one."""
        waits = dict(Ticket.objects.values_list("pk", "is_waiting"))
        passed_on = [one for one in self.in_line if not waits[one.pk]]
        # Somebody has looked: those in line have it in their order.
        assert passed_on == self.in_line[: len(passed_on)]
        for one in passed_on:
            one.is_notified = True
        self.lost -= len(passed_on)
        left = ConditionWaiter.objects.values_list(MicrosUntil("busy_before"), flat=True)
        is_held = [micros > 0 for micros in left]
        assert is_held.count(True) == sum(one.is_notified for one in self.waiting)
        if not self.in_line:  # given back while nobody is in line it is gone
            self.lost = min(self.lost, is_held.count(False))
        assert is_held.count(False) == self.lost

    def teardown(self) -> None:
        """Whatever was left lying, the next ones have it."""
        for one in list(self.waiting):
            one.waiter.outcome.cancel()
            one.turn()


def test_a_condition_in_any_order(process_clock: Callable[[], float], settings: Any) -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "TICKET_TTL": FOREVER}
    machine: Any = ACondition
    check(machine, steps=15)
