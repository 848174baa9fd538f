"""``manage.py resourcepool_consume oracle``: runs the tasks of a stream in order while this process leads."""

import os
import signal
from contextlib import suppress
from typing import Any

from django.utils.module_loading import autodiscover_modules

from resourcepool.management.arguments import Argument, arg
from resourcepool.management.base import OperatorCommand
from resourcepool.taskqueue.consumer import Consumer
from resourcepool.taskqueue.timers.runner import TimerRunner
from resourcepool.taskqueue.worker_loop import GRACE
from resourcepool.translation import gettext as _, gettext_lazy

STDERR = 2


class LongRunningCommand(OperatorCommand):
    """A command that runs until SIGTERM or Ctrl-C. A second signal ends it at once."""

    def arguments(self) -> list[Argument]:
        about = _("grace period for running handlers after SIGTERM (default: %(default)g)")
        return [arg("--grace", about, type=float, default=GRACE, metavar="SECONDS")]

    def serve(self, runner: Consumer | TimerRunner, message: str) -> None:
        """Check that ``runner`` can run, print ``message``, and run until stopped."""
        runner.look_up()
        stopping = _("Stopping once running handlers finish. Press Ctrl-C again to stop now.") + "\n"

        def stop(number: int, frame: object) -> None:
            runner.stop()
            with suppress(OSError):  # stderr may be closed
                os.write(STDERR, stopping.encode())  # print() fails inside another print()
            signal.signal(number, before[signal.Signals(number)])

        before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
        self.stdout.write(message)
        self.stdout.flush()
        try:
            runner.run()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        self.stdout.write(_("stopped"))


class Command(LongRunningCommand):
    about = gettext_lazy(
        "Runs the tasks of a stream in order while this process leads, and waits as a standby while another one"
        " leads. Start it on several hosts. Handlers come from the module task_handlers of each installed app."
        " SIGTERM or Ctrl-C stops it once running tasks have finished."
    )
    example = "manage.py resourcepool_consume oracle\nmanage.py resourcepool_consume oracle --grace 120"
    exit_codes: Any = gettext_lazy(
        "Exit codes: 0 stopped; 1 refused; 2 invalid arguments; 75 a running task was cut off: start it again."
    )

    def arguments(self) -> list[Argument]:
        return [arg("stream", _("the name of a stream")), *super().arguments()]

    def run(self, **options: Any) -> None:
        autodiscover_modules("task_handlers")
        consumer = Consumer(options["stream"], grace=options["grace"])
        self.serve(
            consumer,
            _("consuming %(stream)s; press Ctrl-C or send SIGTERM to stop") % {"stream": consumer.stream},
        )
