"""``cache_lock()``, which takes the options of django-redis's ``cache.lock()`` and redis-py's ``Redis.lock()``."""

from resourcepool.locks.base import TTL
from resourcepool.locks.lock import Lock


def cache_lock(
    key: str | bytes,
    version: int | str | None = None,
    timeout: float | None = None,
    sleep: float = 0.1,
    blocking: bool = True,
    blocking_timeout: float | None = None,
    client: object = None,
    thread_local: bool = True,
    *,
    lock_class: object = None,
    raise_on_release_error: bool = True,
) -> Lock:
    """Return the ``Lock`` that these options describe.

        with cache_lock("report", timeout=30, blocking_timeout=5):
            ...

    Args:
        key, version: together its name; bytes are decoded as UTF-8.
        timeout: the lock's ``ttl``, seconds until others may acquire it after its holder crashed; None or 0: 30. A
            living holder keeps it.
        blocking: False: it is not waited for.
        blocking_timeout: the lock's ``timeout``, seconds to wait; None: no limit.
        sleep, client, thread_local, lock_class, raise_on_release_error: accepted for compatibility; no effect.

    Raises:
        BadOption: an option is invalid.
    """
    name = key.decode() if isinstance(key, bytes) else key
    return Lock(
        name if version is None else f"{name}:{version}",
        ttl=timeout or TTL,
        timeout=blocking_timeout if blocking else 0,
    )
