"""Timers: scheduled work that runs at its time on any live node.

from resourcepool.taskqueue import timers

timers.schedule("order-42-unpaid", after=timedelta(minutes=30), topic="order.timeout", payload={"order": 42})

@timers.on("order.timeout")
def expire(timer): ...
"""

from typing import TYPE_CHECKING

from resourcepool.lazy import lazy_names

__all__ = ["Outcome", "RunningTimer", "Scheduled", "TimerRunner", "cancel", "on", "reschedule", "schedule"]

if TYPE_CHECKING:
    from resourcepool.taskqueue.timers.handlers import RunningTimer, on
    from resourcepool.taskqueue.timers.runner import TimerRunner
    from resourcepool.taskqueue.timers.scheduling import Outcome, Scheduled, cancel, reschedule, schedule
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Outcome": "scheduling",
            "RunningTimer": "handlers",
            "Scheduled": "scheduling",
            "TimerRunner": "runner",
            "cancel": "scheduling",
            "on": "handlers",
            "reschedule": "scheduling",
            "schedule": "scheduling",
        },
    )
