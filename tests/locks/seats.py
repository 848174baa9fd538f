"""What the tests of semaphores share."""

from typing import Any

from resourcepool.locks import Semaphore
from resourcepool.models import SemaphorePermit, Ticket
from tests.eventually import eventually


def permit(number: int = 0, name: str = "seats") -> SemaphorePermit:
    return SemaphorePermit.objects.get(pk=f"{name}#{number}")


def in_line(count: int = 1) -> None:
    eventually(lambda: Ticket.objects.waiting().count() == count)


def held(semaphore: Semaphore, n: int = 1) -> Any:
    hold: Any = semaphore.acquire(n=n)
    return hold
