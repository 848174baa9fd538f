"""``Resource``: a thread that holds one resource and replaces it when it is lost or invalid."""

import logging
import os
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, ClassVar, Generic, cast

from django.db import connections

from resourcepool import options
from resourcepool.db.sync_async import run_sync
from resourcepool.exceptions import AcquireTimeout, BadOption, DatabaseUnavailable, LeaseLost, LeaseReleased
from resourcepool.leases.terms import MIN_TTL
from resourcepool.resources.lease import M, ResourceLease
from resourcepool.resources.models import AbstractResource
from resourcepool.waiting.acquire import acquire

logger = logging.getLogger(__name__)

MAX_INVALID = 10  # in a row, before the checker is blamed instead of the resources
RETRY_DELAY = 0.2  # seconds between attempts to replace a lost resource


class Resource(threading.Thread, Generic[M]):
    """Holds one resource of ``model``, and replaces it when it is lost or invalid.

    Example::

        class CrawlerProxy(Resource[Proxy]):
            model = Proxy
            occupation_delta = timedelta(minutes=2)
            occupation_interval = 30

            def is_valid(self):
                return requests.head("https://example.com", proxies={"https": self.o.url}, timeout=5).ok

        proxy = CrawlerProxy()      # acquires
        proxy.start()               # keeps it, and replaces it when it is lost
        fetch(via=proxy.o.url)
        proxy.fix()                 # replaces it if it is invalid
        proxy.terminate()           # releases it and stops the thread

    Class attributes:

    - ``model``: derived from ``AbstractResource``.
    - ``occupation_delta``: the ttl of the lease (seconds or timedelta).
    - ``occupation_interval``: how often it is renewed; at most a third of ``occupation_delta``.
    - ``acquire_timeout``: how long one attempt to acquire waits; None: the pool's default.
    - ``selectors``: which resources match, e.g. ``{"country": "US"}``.

    The lease is renewed from construction on, also before ``start()``. Not promised: that ``o`` stays the same; use
    ``on_change`` to follow changes, and call ``ensure_held()`` before each use.
    """

    model: ClassVar[Any] = None
    occupation_delta: ClassVar[float | timedelta] = timedelta(minutes=2)
    occupation_interval: ClassVar[float | timedelta] = timedelta(seconds=30)
    acquire_timeout: ClassVar[float | timedelta | None] = None
    selectors: ClassVar[dict[str, Any]] = {}

    def __init__(self, *, on_change: Callable[[M | None, M], None] | None = None) -> None:
        """Acquire a valid resource.

        Args:
            on_change: called with the old and the new model instance whenever this object moves to another resource
                after construction. The old one may be the same row under an older fence; it is None after ``close``.

        Raises:
            AcquireTimeout: no valid resource came free in time.
            BadOption: a class attribute is wrong; names it.
        """
        super().__init__(name=type(self).__name__, daemon=True)
        self._ttl, self._interval = parse_intervals(self)
        self._on_change = on_change
        self._lease: ResourceLease[M] | None = None
        self._replaced: ResourceLease[M] | None = None  # until a replacement is acquired
        self._checked = threading.local()  # the lease that this thread is checking with ``is_valid``
        self._closed = self._stopped = False
        self._wake = threading.Event()
        self._replacing = threading.RLock()  # held while acquiring a replacement, which may take long
        self._swapping = threading.RLock()  # held briefly, so that close() never waits for a replacement
        try:
            self._acquire()
        except BaseException:  # the caller never gets this object
            self._end(ResourceLease._release_quietly)
            raise

    @property
    def o(self) -> M:
        """The held model instance; None after ``close``.

        Inside ``is_valid``: the instance being checked, even if another thread calls ``close`` meanwhile.
        """
        lease = self.lease
        return cast(M, None if lease is None else lease.resource)

    @property
    def lease(self) -> ResourceLease[M] | None:
        """The current handle; changes with ``o``."""
        checked: ResourceLease[M] | None = getattr(self._checked, "lease", None)
        return self._lease if checked is None else checked

    def is_valid(self) -> bool:
        """Return whether ``self.o`` is usable. To override; called while the resource is leased."""
        raise NotImplementedError(f"{type(self).__name__} must define is_valid()")

    def ensure_held(self) -> None:
        """Raise LeaseLost if this process can no longer rely on the lease; no I/O."""
        self._held().ensure_held()

    def keep_occupation(self) -> None:
        """Renew the lease once; raises LeaseLost if it is lost. ``start()`` does this automatically."""
        self._held().renew()

    def _held(self) -> ResourceLease[M]:
        if (lease := self.lease) is None:
            raise LeaseReleased(f"{self} holds nothing: it was closed")
        return lease

    def fix(self) -> None:
        """Quarantine the resource and move to another one, unless it is valid.

        If another thread calls ``close`` meanwhile, no resource is held afterwards.

        Raises:
            AcquireTimeout: no other valid resource came free in time; none is held.
        """
        with self._replacing:
            self._closed = False
            lease = self._lease
            if lease is not None and lease.is_held and self._check(lease):
                logger.info("%s is valid; nothing to fix", self)
                return
            if self._closed:
                return
            logger.info("%s is not valid, replacing it", self)
            self._end(_quarantine)
            self._replace(lease)

    def close(self) -> None:
        """Release the resource, and hold none until ``fix``. May be repeated.

        If it was lost before, its new holder is not affected.
        """
        self._closed = True
        self._end(ResourceLease.release)

    def terminate(self) -> None:
        """Release the resource and stop the thread."""
        self._stopped = True
        try:
            self.close()
        finally:
            self._wake.set()

    def run(self) -> None:
        """Renew every ``occupation_interval``; after a loss acquire another resource."""
        try:
            while not self._stopped:
                self._wake.wait(self._interval)
                self._wake.clear()
                if self._stopped:
                    return
                try:
                    self._renew_or_replace()
                except Exception:
                    logger.exception("%s failed; trying again in %g s", self.name, self._interval)
        finally:
            connections.close_all()

    def __str__(self) -> str:
        return f"{type(self).__name__}[{os.getpid()}] holding {_resource_of(self._lease) or 'nothing'}"

    def _renew_or_replace(self) -> None:
        lease = self._lease
        try:
            if lease is not None:
                lease.renew()
                return
        except LeaseReleased:
            return  # closed meanwhile
        except LeaseLost:
            pass
        except DatabaseUnavailable as error:
            logger.warning("%s: %s; the keeper keeps trying", self, error)
            return
        with self._replacing:
            if self._lease is not lease or self._closed:
                return
            try:
                self._replace(lease)
            except (AcquireTimeout, DatabaseUnavailable) as error:
                if not self._stopped:
                    logger.warning("%s; trying again", error)
                    self._wake.wait(RETRY_DELAY)
                    self._wake.set()

    def _replace(self, before: ResourceLease[M] | None) -> None:
        self._replaced = before or self._replaced
        self._acquire()
        (before, self._replaced), after = (self._replaced, None), self._lease
        if self._on_change is not None and after is not None:
            self._on_change(_resource_of(before), after.resource)

    def _acquire(self) -> None:
        """Acquire a valid resource; quarantine invalid ones."""
        model, wake = self.model, self._wake
        if not (isinstance(model, type) and issubclass(model, AbstractResource)):
            raise BadOption("model", model, "a Django model derived from AbstractResource")
        criteria = {
            "timeout": self.acquire_timeout,
            "ttl": self._ttl,
            # No reference to self: otherwise an unused object would never be deleted.
            "on_lost": lambda _: wake.set(),
            **self.selectors,
        }
        for _ in range(MAX_INVALID):
            (lease,) = run_sync(acquire, model.pool, model.pool.request(1, criteria), lambda: self._stopped)
            self._swap(lease)
            if self._is_ended:
                self._end(ResourceLease.release)
                return
            try:
                valid = self._check(lease)
            except BaseException:
                self._end(ResourceLease._release_quietly)  # is_valid() failed: the resource may be fine
                raise
            if valid:
                logger.info("%s is valid", self)
                lease._is_delivered = True
                return
            logger.info("%s is not valid, trying another", self)
            self._end(_quarantine)
            if self._is_ended:
                return
        raise AcquireTimeout(
            f"{MAX_INVALID} in a row were not valid: is {type(self).__name__}.is_valid() right?"
        )

    @property
    def _is_ended(self) -> bool:
        return self._stopped or self._closed

    def _check(self, lease: ResourceLease[M]) -> bool:
        self._checked.lease = lease
        try:
            return self.is_valid()
        finally:
            self._checked.lease = None

    def _end(self, end: Callable[[ResourceLease[Any]], None]) -> None:
        """Hold nothing, and end the current lease, if any, with ``end``."""
        if (lease := self._swap(None)) is not None:
            try:
                end(lease)
            except LeaseLost as lost:
                logger.info("%s", lost)

    def _swap(self, lease: ResourceLease[M] | None) -> ResourceLease[M] | None:
        with self._swapping:
            before = self._lease
            if before is not None:
                before._stop_renewing()  # its handle is dropped here
            self._lease = lease
        return before


def _quarantine(lease: ResourceLease[Any]) -> None:
    try:
        lease.quarantine("is_valid() returned False")
    except LeaseLost:
        raise
    except Exception:
        lease._release_quietly()  # free earlier than by expiry
        raise


def _resource_of(lease: ResourceLease[Any] | None) -> Any:
    """Return the resource of the lease; None if it no longer exists."""
    try:
        return None if lease is None else lease.resource
    except LeaseLost:
        return None


def parse_intervals(source: Any) -> tuple[float, float]:
    """Return ttl and renewal interval of a ``Resource`` object or class in seconds; raises BadOption."""
    ttl = options.seconds("occupation_delta", source.occupation_delta, least=MIN_TTL)
    # Three renewals per ttl: one may get lost, and one may be late.
    interval = options.seconds("occupation_interval", source.occupation_interval, least=0.01, most=ttl / 3)
    return ttl, interval
