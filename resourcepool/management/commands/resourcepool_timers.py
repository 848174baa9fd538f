"""``manage.py resourcepool_timers``: handles timers that are due, beside all other nodes that do so."""

import importlib
from typing import Any

from django.core.management.base import CommandError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.management.arguments import Argument, arg, flag, parse_labels
from resourcepool.management.long_running import LongRunningCommand
from resourcepool.taskqueue.timers import handlers
from resourcepool.taskqueue.timers.runner import LATE_RATE, THREADS, TimerRunner


class Command(LongRunningCommand):
    about = gettext_lazy(
        "Handles the timers that are due. Start it on several hosts: each timer is handled by one of them, and by"
        " another one if that dies. It finds handlers in the modules timer_handlers and task_handlers of each installed"
        " app, and leaves topics alone that have none here. SIGTERM or Ctrl-C ends it once the running handlers have"
        " ended."
    )
    example = (
        "manage.py resourcepool_timers\n"
        "manage.py resourcepool_timers --threads 16 --label zone=eu --label canary=yes --node-version 2.10"
    )
    exit_codes: Any = gettext_lazy(
        "Exit codes: 0 stopped; 1 refused; 2 not understood; 75 a running handler was cut off: start it again."
    )

    def arguments(self) -> list[Argument]:
        label = _("a label of this node; default: those of RESOURCEPOOL['NODE_LABELS']")
        version = _("of the code on this node; default: RESOURCEPOOL['NODE_VERSION']")
        celery = _("hands each timer that is due to a Celery task, in whose worker its handler runs")
        late = _("how many timers a second it begins that are late by more than a minute; default: %(default)g")
        threads = _("how many handlers run at a time; default: %(default)d")
        return [
            *super().arguments(),
            arg("--threads", threads, type=int, default=THREADS),
            arg("--label", label, action="append", metavar="KEY=VALUE"),
            arg("--node-version", version, metavar="VERSION"),
            flag("--celery", celery),
            arg("--late-rate", late, type=float, default=LATE_RATE, metavar="COUNT"),
        ]

    def run(self, **options: Any) -> None:
        handlers.discover()
        runner = TimerRunner(
            threads=options["threads"],
            labels=parse_labels(options["label"]) if options["label"] else None,
            version=options["node_version"],
            grace=options["grace"],
            late_rate=options["late_rate"],
            by=_by_celery() if options["celery"] else None,
        )
        self.serve(runner, _("handling timers; Ctrl-C or SIGTERM ends it"))


def _by_celery() -> Any:
    try:
        return importlib.import_module("resourcepool.celery_timers").by_celery
    except ImportError:
        raise CommandError(_("Celery is not installed.")) from None
