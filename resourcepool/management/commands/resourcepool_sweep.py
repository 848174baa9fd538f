"""``manage.py resourcepool_sweep``: what Celery beat starts every minute, for those who have cron or nothing."""

from typing import Any

from django.db import DatabaseError, InterfaceError
from django.utils.translation import gettext, gettext_lazy
from django.utils.translation import gettext as _

from resourcepool import options as checked
from resourcepool.events import localized
from resourcepool.exceptions import ResourcePoolError
from resourcepool.jobs import PRUNE, STATISTICS, SWEEP
from resourcepool.management.arguments import Argument, arg
from resourcepool.management.base import OperatorCommand
from resourcepool.management.layout import printable
from resourcepool.sweeps import sweep as sweeps
from resourcepool.threads.interruptible_sleep import interruptible_sleep

JOBS = ((SWEEP, sweeps.sweep), (STATISTICS, sweeps.refresh_statistics), (PRUNE, sweeps.prune))


class Command(OperatorCommand):
    # No dry run: it undoes nothing that somebody has decided.
    about = gettext_lazy(
        "Returns to service what is due, tells of leases that ran out, writes down how the pools stand, and removes old"
        " history. Nothing depends on it for being correct; the dashboard's charts and alarms do."
    )
    example = "manage.py resourcepool_sweep\nmanage.py resourcepool_sweep --every 60"
    interrupted = gettext_lazy("what is left is done by the next one")

    def arguments(self) -> list[Argument]:
        return [arg("--every", _("repeat until Ctrl-C or SIGTERM"), type=float, metavar="SECONDS")]

    def run(self, **options: Any) -> None:
        """Sweep once, or again and again; then no failure ends it, for the next one may find the database back."""
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
                    self.stderr.write(printable(localized(error)))
                interruptible_sleep(seconds)
        except KeyboardInterrupt:  # the way to end it
            self.stdout.write(_("stopped"))

    def _sweep(self) -> None:
        for name, job in JOBS:
            done = job()
            result = _("being done elsewhere") if done is None else localized(done)
            self.stdout.write(f"{gettext(name)}: {result}")
        self.stdout.flush()
