"""``manage.py resourcepool_sweep``: the periodic jobs, for projects without Celery beat."""

from typing import Any

from django.db import DatabaseError, InterfaceError

from resourcepool import options as checked
from resourcepool.db.threads import interruptible_sleep
from resourcepool.events import localized
from resourcepool.exceptions import ResourcePoolError
from resourcepool.jobs import PRUNE, STATISTICS, SWEEP
from resourcepool.management.arguments import Argument, arg
from resourcepool.management.base import OperatorCommand
from resourcepool.management.layout import printable_lines
from resourcepool.sweeps import sweep as sweeps
from resourcepool.translation import gettext, gettext as _, gettext_lazy

JOBS = ((SWEEP, sweeps.sweep), (STATISTICS, sweeps.refresh_statistics), (PRUNE, sweeps.prune))


class Command(OperatorCommand):
    # No dry run: it reverses no decision of an operator.
    about = gettext_lazy(
        "Returns due resources to service, reports expired leases, records the state of the pools and prunes history."
        " Leases are correct without it; the charts and alarms of the dashboard need it."
    )
    example = "manage.py resourcepool_sweep\nmanage.py resourcepool_sweep --every 60"
    interrupted = gettext_lazy("the next sweep does the rest")

    def arguments(self) -> list[Argument]:
        return [arg("--every", _("repeat until Ctrl-C or SIGTERM"), type=float, metavar="SECONDS")]

    def run(self, **options: Any) -> None:
        """Sweep once, or every ``--every`` seconds; then errors are printed, and the next sweep tries again."""
        every = options["every"]
        if every is None:
            self._sweep()
            return
        seconds = checked.seconds("--every", every, least=1)
        try:
            while True:
                try:
                    self._sweep()
                except (ResourcePoolError, DatabaseError, InterfaceError) as error:
                    self.stderr.write(printable_lines(localized(error)))
                interruptible_sleep(seconds)
        except KeyboardInterrupt:  # the usual way to stop it
            self.stdout.write(_("stopped"))

    def _sweep(self) -> None:
        for name, job in JOBS:
            done = job()
            result = _("running in another process") if done is None else localized(done)
            self.stdout.write(f"{gettext(name)}: {result}")
        self.stdout.flush()
