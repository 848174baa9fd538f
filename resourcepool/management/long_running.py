"""The base of commands that run handlers until they are stopped."""

import os
import signal
from contextlib import suppress

from resourcepool.management.arguments import Argument, arg
from resourcepool.management.base import OperatorCommand
from resourcepool.taskqueue.consumer import Consumer
from resourcepool.taskqueue.timers.runner import TimerRunner
from resourcepool.taskqueue.worker_loop import GRACE
from resourcepool.translation import gettext as _

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
