"""What the commands have in common that run handlers until they are told to stop."""

import signal
from typing import Protocol

from django.core.management.base import CommandParser
from django.utils.translation import gettext as _

from resourcepool.management.base import OperatorCommand
from resourcepool.taskqueue.turning import DRAIN_WITHIN


class Serves(Protocol):
    """What runs until it is stopped, which a signal handler may do."""

    def look_up(self) -> object:
        """Read what it needs; raises what is wrong with that."""

    def run(self) -> None:
        """Run."""

    def stop(self) -> None:
        """Make ``run`` return soon."""


class ServingCommand(OperatorCommand):
    """A command that runs until SIGTERM or Ctrl-C; a second one ends it as usual."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--drain-within",
            type=float,
            default=DRAIN_WITHIN,
            metavar="SECONDS",
            help=_("how long running handlers may go on after SIGTERM; default: %(default)g"),
        )

    def serve(self, one: Serves, said: str) -> None:
        """Say so, and run it until it is told to stop; what is wrong from the start is told before anything else."""
        one.look_up()

        def stop(number: int, frame: object) -> None:
            one.stop()
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
