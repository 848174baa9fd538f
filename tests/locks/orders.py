"""A condition as the tests of it use it, and threads that wait for it."""

from typing import Any

from resourcepool.locks import Condition, Lock
from resourcepool.models import ConditionWaiter, Ticket
from tests.eventually import InBackground, eventually

NAME = "orders"


def condition() -> Condition:
    return Condition(Lock(NAME, ttl=60))


def in_line() -> int:
    return Ticket.objects.in_line_for(ConditionWaiter, NAME).waiting().count()


def waiting(number: int = 1, **options: Any) -> list[InBackground]:
    """Start so many threads, one after the other, that wait; returns once all of them stand in line."""
    started = []
    for _ in range(number):
        before = in_line()
        started.append(InBackground(wait, **options) if not options else InBackground(lambda: wait(**options)))
        eventually(lambda before=before: in_line() == before + 1)
    return started


def wait(timeout: Any = None) -> bool:
    with condition() as held:
        result = condition().wait(timeout)
        assert held.is_held
        return result


def notify(number: int = 1) -> int:
    with condition() as held:
        count = condition().notify(number)
        assert held.is_held
    return count
