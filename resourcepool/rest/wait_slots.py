"""Limits how many requests wait in this process: each keeps a thread of the web server, which renewals need, too."""

import contextlib
import dataclasses
import threading
from collections.abc import Iterator

from rest_framework.request import Request

from resourcepool.conf import rest_waits
from resourcepool.db.threads.daemon import per_process
from resourcepool.exceptions import AcquireTimeout
from resourcepool.leases.terms import Request as LeaseRequest
from resourcepool.rest.errors import retry_delay


class TooManyWait(AcquireTimeout):
    """Nothing was free at once, and no more requests may wait in this process of the web server."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.retry_after = retry_delay()


class WaitSlots:
    """Counts the requests of this process that wait."""

    def __init__(self) -> None:
        self._lock, self._used = threading.Lock(), 0

    @contextlib.contextmanager
    def take(self, most: int) -> Iterator[bool]:
        """Use one of ``most`` slots for this block; yield whether one was free."""
        with self._lock:
            is_free = self._used < most
            self._used += is_free
        try:
            yield is_free
        finally:
            with self._lock:
                self._used -= is_free


@contextlib.contextmanager
def wait_slot(request: Request, wanted: LeaseRequest) -> Iterator[LeaseRequest]:
    """Yield the request, without its timeout if no more requests may wait here.

    Raises:
        TooManyWait: instead of the AcquireTimeout of a request without its timeout.
    """
    most = max_waits(request)
    with wait_slots.take(most if wanted.timeout else 0) as has_slot:
        try:
            yield wanted if has_slot else dataclasses.replace(wanted, timeout=0.0)
        except AcquireTimeout as error:
            if has_slot or not wanted.timeout:
                raise
            why = (
                f"the limit is {most} (RESOURCEPOOL['REST_WAITS'])"
                if has_threads(request)
                else "the process has one thread; start it with more (gunicorn --threads 8)"
            )
            raise TooManyWait(
                f"{error}. No more requests can wait in this process of the web server: {why}"
            ) from None


def max_waits(request: Request) -> int:
    """Return how many requests may wait here; none in a process with a single thread."""
    return rest_waits() if has_threads(request) else 0


def has_threads(request: Request) -> bool:
    """Whether the process has more than one thread, by the web server; true under ASGI."""
    return bool(request.META.get("wsgi.multithread", True))


wait_slots = per_process(WaitSlots)
