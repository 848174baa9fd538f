"""Timers and Celery: Celery tasks at a given time, and handlers of timers that run in Celery workers.

INSTALLED_APPS = [.., "resourcepool", "resourcepool.contrib.celery_timers"]
"""

from typing import TYPE_CHECKING

from resourcepool.lazy import lazy_names

__all__ = ["apply_async_at"]

if TYPE_CHECKING:
    from resourcepool.contrib.celery_timers.timer_handlers import apply_async_at
else:
    __getattr__, __dir__ = lazy_names(__name__, {"apply_async_at": "timer_handlers"})
