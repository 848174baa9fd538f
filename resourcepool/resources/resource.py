"""``Resource``: document 000's thread class, with its holes closed (R0.3 to R0.6)."""

import logging
import os
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, ClassVar

from django.db import connections

from resourcepool import options
from resourcepool.exceptions import AcquireTimeout, BadOption, DatabaseUnavailable, LeaseLost, LeaseReleased
from resourcepool.leases.terms import MIN_TTL
from resourcepool.resources.lease import ResourceLease
from resourcepool.resources.models import AbstractResource
from resourcepool.waiting.acquire import acquire

logger = logging.getLogger(__name__)

MAX_INVALID = 10  # in a row, before the checker is blamed instead of the resources
PAUSE = 0.2  # seconds between two attempts to replace a lost resource


class Resource(threading.Thread):
    """Holds one resource of ``model`` for as long as it lives, and replaces it when it is lost or invalid.

    Example::

        class CrawlerProxy(Resource):
            model = Proxy
            occupation_delta = timedelta(minutes=2)
            occupation_interval = 30

            def is_valid(self):
                return requests.head("https://example.com", proxies={"https": self.o.url}, timeout=5).ok

        proxy = CrawlerProxy()      # acquires
        proxy.start()               # keeps it, and replaces it when it is lost
        fetch(via=proxy.o.url)
        proxy.fix()                 # still valid: does nothing; otherwise switches to another one
        proxy.terminate()           # gives it back and stops the thread

    Class attributes:

    - ``model``: derived from ``AbstractResource``.
    - ``occupation_delta``: how long a grant lasts (seconds or timedelta).
    - ``occupation_interval``: how often it is renewed; at most a third of ``occupation_delta``.
    - ``acquire_timeout``: how long one attempt to acquire waits; None: the pool's default.
    - ``selectors``: which rows are suitable, e.g. ``{"country": "US"}``.

    The lease is renewed from construction on, also before ``start()``. Not promised: that ``o`` stays the
    same; ``on_change`` tells when it does not. Use ``ensure_held()`` before each use.
    """

    model: ClassVar[Any] = None
    occupation_delta: ClassVar[float | timedelta] = timedelta(minutes=2)
    occupation_interval: ClassVar[float | timedelta] = timedelta(seconds=30)
    acquire_timeout: ClassVar[float | timedelta | None] = None
    selectors: ClassVar[dict[str, Any]] = {}

    def __init__(self, *, on_change: Callable[[Any, Any], None] | None = None) -> None:
        """Acquire a valid resource.

        Args:
            on_change: called with the old and the new model instance whenever this object has moved to another
                resource after construction (the old one may be the same row under a new fence, and is None
                after ``close``).

        Raises:
            AcquireTimeout: no valid one came free in time.
            BadOption: a class attribute is wrong; names it.
        """
        super().__init__(name=type(self).__name__, daemon=True)
        self._ttl, self._interval = parse_intervals(self)
        self._on_change = on_change
        self._lease: ResourceLease | None = None
        self._replaced: ResourceLease | None = None  # until another one is found
        self._checked = threading.local()  # the lease that a thread asks ``is_valid`` about
        self._closed = self._stopped = False
        self._wake = threading.Event()
        self._replacing = threading.RLock()  # held while another resource is sought, which may take long
        self._swapping = threading.RLock()  # held for a moment, so that close() never waits for the above
        try:
            self._acquire()
        except BaseException:  # nobody will ever have this object
            self._end(ResourceLease.release_quietly)
            raise

    @property
    def o(self) -> Any:
        """The model instance that is held; None after ``close``. The name is the document's.

        Inside ``is_valid``: the instance that is being checked, also if another thread closes meanwhile.
        """
        lease = self.lease
        return None if lease is None else lease.resource

    @property
    def lease(self) -> ResourceLease | None:
        """The current handle; another one after each change. Inside ``is_valid`` as ``o``."""
        checked: ResourceLease | None = getattr(self._checked, "lease", None)
        return self._lease if checked is None else checked

    def is_valid(self) -> bool:
        """Tell whether ``self.o`` is usable. Override it; called while the resource is leased."""
        raise NotImplementedError(f"{type(self).__name__} must define is_valid()")

    def ensure_held(self) -> None:
        """Return if the resource may still be relied on; no I/O. Raises LeaseLost."""
        self._held().ensure_held()

    def keep_occupation(self) -> None:
        """Renew the lease once; raises LeaseLost when it is gone. ``start()`` does this for you."""
        self._held().renew()

    def _held(self) -> ResourceLease:
        if (lease := self.lease) is None:
            raise LeaseReleased(f"{self} holds nothing: it was closed")
        return lease

    def fix(self) -> None:
        """If the resource is valid, do nothing; otherwise quarantine it and move to another one.

        If another thread closes meanwhile, nothing is held afterwards.

        Raises:
            AcquireTimeout: no other valid one came free in time; nothing is held then.
        """
        with self._replacing:
            self._closed = False
            lease = self._lease
            if lease is not None and lease.is_held and self._finds_valid(lease):
                logger.info("%s is valid, no need to fix", self)
                return
            if self._closed:
                return
            logger.info("%s is not valid, getting another", self)
            self._end(_quarantine)
            self._replace(lease)

    def close(self) -> None:
        """Give the resource back, and hold none until ``fix``. May be repeated.

        If it was lost before, its new holder is not affected.
        """
        self._closed = True
        self._end(ResourceLease.release_or_expire)

    def terminate(self) -> None:
        """Give the resource back and stop the thread."""
        self._stopped = True
        try:
            self.close()
        finally:
            self._wake.set()

    def run(self) -> None:
        """Renew every ``occupation_interval``; after a loss acquire another resource (R0.5)."""
        try:
            while not self._stopped:
                self._wake.wait(self._interval)
                self._wake.clear()
                if self._stopped:
                    return
                try:
                    self._turn()
                except Exception:
                    logger.exception("%s failed; trying again in %g s", self.name, self._interval)
        finally:
            connections.close_all()

    def __str__(self) -> str:
        return f"{type(self).__name__}[{os.getpid()}] holding {_named(self._lease) or 'nothing'}"

    def _turn(self) -> None:
        lease = self._lease
        try:
            if lease is not None:
                lease.renew()
                return
        except LeaseReleased:
            return  # close() was faster
        except LeaseLost:
            pass
        except DatabaseUnavailable as error:
            logger.warning("%s: %s; the keeper goes on trying", self, error)
            return
        with self._replacing:
            if self._lease is not lease or self._closed:
                return
            try:
                self._replace(lease)
            except (AcquireTimeout, DatabaseUnavailable) as error:
                if not self._stopped:
                    logger.warning("%s; trying again", error)
                    self._wake.wait(PAUSE)
                    self._wake.set()

    def _replace(self, before: ResourceLease | None) -> None:
        self._replaced = before or self._replaced
        self._acquire()
        (before, self._replaced), after = (self._replaced, None), self._lease
        if self._on_change is not None and after is not None:
            self._on_change(_named(before), after.resource)

    def _acquire(self) -> None:
        """Hold a valid resource; quarantine invalid ones that come up on the way (R0.4)."""
        model, wake = self.model, self._wake
        if not (isinstance(model, type) and issubclass(model, AbstractResource)):
            raise BadOption("model", model, "a Django model derived from AbstractResource")
        criteria = {
            "timeout": self.acquire_timeout,
            "ttl": self._ttl,
            # It must not keep this object alive, or its loss would go unnoticed.
            "on_lost": lambda _: wake.set(),
            **self.selectors,
        }
        for _ in range(MAX_INVALID):
            (lease,) = acquire(model.pool, model.pool.request(1, criteria), lambda: self._stopped)
            self._swap(lease)
            if self._is_over:
                self._end(ResourceLease.release_or_expire)
                return
            try:
                valid = self._finds_valid(lease)
            except BaseException:
                self._end(
                    ResourceLease.release_quietly
                )  # the checker failed, which says nothing about the resource
                raise
            if valid:
                logger.info("%s is valid", self)
                lease.is_delivered = True
                return
            logger.info("%s is not valid, trying another", self)
            self._end(_quarantine)
            if self._is_over:
                return
        raise AcquireTimeout(
            f"{MAX_INVALID} in a row were not valid: is {type(self).__name__}.is_valid() right?"
        )

    @property
    def _is_over(self) -> bool:
        return self._stopped or self._closed

    def _finds_valid(self, lease: ResourceLease) -> bool:
        self._checked.lease = lease
        try:
            return self.is_valid()
        finally:
            self._checked.lease = None

    def _end(self, end: Callable[[ResourceLease], None]) -> None:
        """Hold nothing, and end the lease in this way, if there is one."""
        if (lease := self._swap(None)) is not None:
            try:
                end(lease)
            except LeaseLost as lost:
                logger.info("%s", lost)

    def _swap(self, lease: ResourceLease | None) -> ResourceLease | None:
        with self._swapping:
            before = self._lease
            if before is not None:
                before.stop_renewing()  # nobody has its handle any more, so nobody could give it back later
            self._lease = lease
        return before


def _quarantine(lease: ResourceLease) -> None:
    try:
        lease.quarantine("is_valid() said no")
    except LeaseLost:
        raise
    except Exception:
        lease.release_quietly()  # free sooner than by expiry
        raise


def _named(lease: ResourceLease | None) -> Any:
    """Return the resource that is, or was, leased; None if it no longer exists."""
    try:
        return None if lease is None else lease.resource
    except LeaseLost:
        return None


def parse_intervals(asked: Any) -> tuple[float, float]:
    """Return ttl and renewal interval in seconds, from a ``Resource`` or its class; raises BadOption."""
    ttl = options.seconds("occupation_delta", asked.occupation_delta, least=MIN_TTL)
    # Three chances: one renewal may be lost and one may be late.
    interval = options.seconds("occupation_interval", asked.occupation_interval, least=0.01, most=ttl / 3)
    return ttl, interval
