"""Conditions between real processes: no notification is lost when one is killed, or stands still."""

import signal

from resourcepool.locks import Condition, Lock
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import ConditionWaiter, Ticket
from tests.app.rows import expire
from tests.concurrency.tickets import lapse_after
from tests.eventually import eventually
from tests.spawned import Child, Spawner

NAME = "buffer"
LAPSES = 2.0  # seconds, of those who die here


def in_line() -> int:
    return Ticket.objects.in_line_for(ConditionWaiter, NAME).waiting().count()


def condition() -> Condition:
    return Condition(Lock(NAME, ttl=LAPSES), NAME)


def wait_once() -> None:
    """Wait, and say what came of it."""
    lapse_after(LAPSES)
    with condition() as held:
        print("holds", flush=True)
        result = condition().wait()
        held.ensure_held()
        print(f"woke up {result}", flush=True)


def waiting(spawn: Spawner, number: int) -> list[Child]:
    """Start so many processes; they stand in line in this order."""
    children = []
    for count in range(1, number + 1):
        children.append(spawn(wait_once))
        eventually(lambda count=count: in_line() == count)
    eventually(lambda: not Lock(NAME).locked())  # one that is stopped before would lose the lock
    return children


def test_a_notified_waiter_that_is_killed_before_it_has_the_lock_passes_it_on(spawn: Spawner) -> None:
    first, second = waiting(spawn, 2)
    with condition():
        assert condition().notify() == 1
        eventually(Ticket.objects.filter(pool=f"{LockRow._meta.label_lower}:{NAME}").waiting().exists)
        first.kill()
    second.line("woke up True")
    second.succeed()
    eventually(lambda: not ConditionWaiter.objects.exists())


def test_so_does_one_that_was_killed_before_it_knew_of_it(spawn: Spawner) -> None:
    first, second = waiting(spawn, 2)
    first.send(signal.SIGSTOP)
    with condition():
        assert condition().notify() == 1
        first.kill()
    second.line("woke up True")
    second.succeed()


def test_a_killed_waiter_that_was_not_notified_is_passed_over(spawn: Spawner) -> None:
    first, second = waiting(spawn, 2)
    first.kill()
    expire(Ticket.objects.in_line_for(ConditionWaiter, NAME).order_by("pk").first())
    with condition():
        assert condition().notify() == 1
    second.line("woke up True")


def test_a_frozen_waiter_wakes_up_and_the_next_one_has_its_notification(spawn: Spawner) -> None:
    first, second = waiting(spawn, 2)
    first.send(signal.SIGSTOP)
    with condition():
        assert condition().notify() == 1
    second.line("woke up True")  # after it has lapsed
    second.succeed()
    first.send(signal.SIGCONT)
    first.line("woke up True")  # it cannot know; a second wait would be for ever
    first.succeed()


def test_a_waiter_whose_place_lapsed_while_it_stood_still_does_not_wait_for_ever(spawn: Spawner) -> None:
    (only,) = waiting(spawn, 1)
    only.send(signal.SIGSTOP)
    expire(Ticket.objects.in_line_for(ConditionWaiter, NAME).get())
    with condition():
        assert condition().notify() == 0
    only.send(signal.SIGCONT)
    only.line("woke up True")
    only.succeed()
