"""How many requests wait in line in this process: each keeps a thread of the web server, and renewals need one, too."""

import contextlib
import dataclasses
import os
import threading
from collections.abc import Iterator

from rest_framework.request import Request

from resourcepool.conf import rest_waits
from resourcepool.exceptions import AcquireTimeout
from resourcepool.rest.errors import retry_delay
from resourcepool.waiting.request import Request as LeaseRequest


class TooManyWait(AcquireTimeout):
    """Nothing was free at once, and as many requests wait in this web server as may."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.retry_after = retry_delay()


class WaitSlots:
    """The requests of this process that wait."""

    def __init__(self) -> None:
        self._lock, self._taken = threading.Lock(), 0

    @contextlib.contextmanager
    def take(self, most: int) -> Iterator[bool]:
        """Take a place for this block, and yield whether there was one among ``most``."""
        with self._lock:
            is_free = self._taken < most
            self._taken += is_free
        try:
            yield is_free
        finally:
            with self._lock:
                self._taken -= is_free


@contextlib.contextmanager
def wait_slot(request: Request, wanted: LeaseRequest) -> Iterator[LeaseRequest]:
    """Yield the wish as it may be made here: without its timeout if no more requests may wait.

    Raises:
        TooManyWait: in place of the AcquireTimeout of such a wish.
    """
    most = max_waits(request)
    with wait_slots.take(most if wanted.timeout else 0) as may_wait:
        try:
            yield wanted if may_wait else dataclasses.replace(wanted, timeout=0.0)
        except AcquireTimeout as error:
            if may_wait or not wanted.timeout:
                raise
            why = (
                f"no more than {most} may (RESOURCEPOOL['REST_WAITS'])"
                if has_threads(request)
                else "it has one thread: start it with more (gunicorn --threads 8)"
            )
            raise TooManyWait(f"{error}. It cannot wait in this process of the web server: {why}") from None


def max_waits(request: Request) -> int:
    """Return how many requests may wait here; none in a process that has one thread."""
    return rest_waits() if has_threads(request) else 0


def has_threads(request: Request) -> bool:
    """Whether the web server says that its process has more than one thread; under ASGI it has."""
    return bool(request.META.get("wsgi.multithread", True))


wait_slots = WaitSlots()
os.register_at_fork(after_in_child=wait_slots.__init__)  # type: ignore[misc]
