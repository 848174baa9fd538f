"""``manage.py resourcepool_celery_timers``: runs a node that hands due timers over to Celery workers."""

from typing import Any

from resourcepool.contrib.celery_timers.tasks import DispatchingRunner
from resourcepool.management.commands import resourcepool_timers
from resourcepool.taskqueue.timers.runner import TimerRunner
from resourcepool.translation import gettext_lazy


class Command(resourcepool_timers.Command):
    about = gettext_lazy(
        "Runs handlers of timers in Celery workers: hands each due timer to a Celery task. Otherwise like"
        " resourcepool_timers, beside which it may run."
    )
    example = "manage.py resourcepool_celery_timers --label zone=eu"

    def make_runner(self, **options: Any) -> TimerRunner:
        return DispatchingRunner(**options)
