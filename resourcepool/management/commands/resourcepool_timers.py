"""``manage.py resourcepool_timers``: runs a node that handles due timers."""

from typing import Any

from resourcepool.management.arguments import Argument, arg, parse_labels
from resourcepool.management.commands.resourcepool_consume import LongRunningCommand
from resourcepool.taskqueue.timers import handlers
from resourcepool.taskqueue.timers.runner import LATE_RATE, THREADS, TimerRunner
from resourcepool.translation import gettext as _, gettext_lazy


class Command(LongRunningCommand):
    about = gettext_lazy(
        "Handles due timers. Start it on several hosts: each timer is handled by one of them, and by another one if"
        " that host crashes. Handlers come from the modules timer_handlers and task_handlers of each installed app;"
        " topics without a handler here are skipped. SIGTERM or Ctrl-C stops it once running handlers have finished."
    )
    example = (
        "manage.py resourcepool_timers\n"
        "manage.py resourcepool_timers --threads 16 --label zone=eu --label canary=yes --node-version 2.10"
    )
    exit_codes: Any = gettext_lazy(
        "Exit codes: 0 stopped; 1 refused; 2 invalid arguments; 75 a running handler was cut off: start it again."
    )

    def arguments(self) -> list[Argument]:
        label = _("label of this node (default: RESOURCEPOOL['NODE_LABELS'])")
        version = _("version of the code on this node (default: RESOURCEPOOL['NODE_VERSION'])")
        late = _("timers per second to start that are late by more than a minute (default: %(default)g)")
        threads = _("number of handlers to run at a time (default: %(default)d)")
        return [
            *super().arguments(),
            arg("--threads", threads, type=int, default=THREADS),
            arg("--label", label, action="append", metavar="KEY=VALUE"),
            arg("--node-version", version, metavar="VERSION"),
            arg("--late-rate", late, type=float, default=LATE_RATE, metavar="COUNT"),
        ]

    def run(self, **options: Any) -> None:
        handlers.discover()
        runner = self.make_runner(
            threads=options["threads"],
            labels=parse_labels(options["label"]) if options["label"] else None,
            version=options["node_version"],
            grace=options["grace"],
            late_rate=options["late_rate"],
        )
        self.serve(runner, _("handling timers; press Ctrl-C or send SIGTERM to stop"))

    def make_runner(self, **options: Any) -> TimerRunner:
        return TimerRunner(**options)
