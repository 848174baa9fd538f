"""``cache_lock()``, a drop-in for django-redis's ``cache.lock()`` and redis-py's ``Redis.lock()``.

    from resourcepool.contrib.cache_lock import cache_lock
    with cache_lock("report", timeout=30, blocking_timeout=5): ...

Differences: a living holder keeps the lock (``timeout`` counts from a crash), waiters are served in order without
polling, ``release`` raises ``NotHeld`` instead of ``LockError``, and only the thread that holds it may acquire it again
or release it.
"""

import contextlib
import logging
from collections.abc import Callable
from typing import Any

from resourcepool import options
from resourcepool.db.sync_async import run_sync
from resourcepool.exceptions import BadOption, LeaseLost, NotHeld
from resourcepool.leases.terms import MIN_TTL
from resourcepool.locks.base import TTL, wait_seconds
from resourcepool.locks.lock import Lock
from resourcepool.locks.models import MAX_NAME

logger = logging.getLogger(__name__)


class RedisStyleLock:
    """A ``Lock`` with the options and methods of redis-py's.

    Args:
        key, version: together its name; bytes are decoded as UTF-8. No leading or trailing spaces: databases ignore
            them.
        timeout: seconds until others may acquire it after its holder crashed; None or 0: 30.
        blocking_timeout: seconds that ``acquire`` waits; None: no limit.
        blocking: False: ``acquire`` does not wait.
        raise_on_release_error: False: a loss before the end of a ``with`` block is only logged.
        sleep, thread_local, client, lock_class: accepted for compatibility; no effect.

    Raises:
        BadOption: an option is invalid.
    """

    def __init__(
        self,
        key: str | bytes,
        version: int | str | None = None,
        timeout: float | None = None,
        sleep: float = 0.1,
        blocking: bool = True,
        blocking_timeout: float | None = None,
        client: object = None,
        thread_local: bool = True,
        *,
        lock_class: Callable[..., Any] | None = None,
        raise_on_release_error: bool = True,
    ) -> None:
        key = options.text("key", _decoded(key), most=MAX_NAME)
        if isinstance(version, bool) or not isinstance(version, int | str | None):
            raise BadOption("version", version, "an integer or a string")
        self.name = options.name("key", key if version is None else f"{key}:{version}", most=MAX_NAME)
        # 0 is django-redis's "never expires"
        has_default_ttl = timeout is None or (timeout == 0 and not isinstance(timeout, bool))
        ttl = TTL if has_default_ttl else options.seconds("timeout", timeout, least=MIN_TTL)
        self._lock = Lock(self.name, ttl=ttl, timeout=_checked(blocking_timeout))
        self.timeout, self.blocking_timeout = timeout, blocking_timeout
        self.sleep, self.thread_local = sleep, thread_local
        self.blocking = options.flag("blocking", blocking)
        self.raise_on_release_error = options.flag("raise_on_release_error", raise_on_release_error)

    def __reduce__(self) -> Any:
        raise TypeError(f"{self!r} cannot be pickled or copied: create it by name instead")

    def __repr__(self) -> str:
        return f"<cache_lock {self.name!r}>"

    def acquire(
        self,
        sleep: float | None = None,
        blocking: bool | None = None,
        blocking_timeout: float | None = None,
        token: object = None,
    ) -> bool:
        """Acquire it; return whether it was acquired. ``sleep``, ``token``: no effect. Raises like ``Lock.acquire``."""
        waits = self.blocking if blocking is None else blocking
        return self._lock.acquire(waits, _checked(blocking_timeout) if waits else None) is not None

    def release(self) -> None:
        """Release it. Raises NotHeld, LeaseLost."""
        self._lock.release()

    def extend(self, additional_time: float = 0, replace_ttl: bool = False) -> bool:
        """Renew it now; the time has no effect, renewal is automatic. Raises NotHeld, LeaseLost."""
        return self.reacquire()

    def reacquire(self) -> bool:
        """Renew it now. Raises NotHeld, LeaseLost."""
        self._lock._require_hold("renew it").leases[0].renew()
        return True

    def locked(self) -> bool:
        """Whether it is held."""
        return self._lock.locked()

    def owned(self) -> bool:
        """Whether this thread holds it."""
        return self._lock.owned()

    def __enter__(self) -> "RedisStyleLock":
        run_sync(self._lock._obtain, self._lock._wait(self.blocking, None))
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        try:
            self._lock.__exit__(kind, *rest)
        except (NotHeld, LeaseLost) as error:
            if self.raise_on_release_error:
                raise
            logger.warning("%s", error)


def _decoded(key: object) -> object:
    with contextlib.suppress(UnicodeDecodeError):  # the caller rejects it
        return key.decode() if isinstance(key, bytes) else key
    return key


def _checked(blocking_timeout: float | None) -> float | None:
    wait_seconds("blocking_timeout", blocking_timeout)
    return blocking_timeout


cache_lock = RedisStyleLock
