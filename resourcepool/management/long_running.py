"""What the commands have in common that run handlers until they are told to stop."""

import os
import signal
from contextlib import suppress

from django.utils.translation import gettext as _

from resourcepool.management.arguments import Argument, arg
from resourcepool.management.base import OperatorCommand
from resourcepool.taskqueue.consumer import Consumer
from resourcepool.taskqueue.timers.runner import TimerRunner
from resourcepool.taskqueue.worker_loop import GRACE

STDERR = 2


class LongRunningCommand(OperatorCommand):
    """A command that runs until SIGTERM or Ctrl-C; a second one ends it as usual."""

    def arguments(self) -> list[Argument]:
        about = _("how long running handlers may go on after SIGTERM; default: %(default)g")
        return [arg("--grace", about, type=float, default=GRACE, metavar="SECONDS")]

    def serve(self, one: Consumer | TimerRunner, said: str) -> None:
        """Print ``said`` and run until told to stop; a wrong name is refused before that."""
        one.look_up()
        told = _("stopping: what runs may end first; Ctrl-C again ends it at once") + "\n"

        def stop(number: int, frame: object) -> None:
            one.stop()
            with suppress(OSError):  # nobody may be there to read it
                os.write(STDERR, told.encode())  # print() fails where it has interrupted another one
            signal.signal(number, before[signal.Signals(number)])

        before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
        self.stdout.write(said)
        self.stdout.flush()
        try:
            one.run()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        self.stdout.write(_("stopped"))
