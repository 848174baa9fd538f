"""``manage.py resourcepool_sweep``: what Celery beat starts every minute, for those who have cron or nothing."""

import threading
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool import options as checked
from resourcepool.exceptions import ResourcePoolError
from resourcepool.jobs.names import PRUNE, STATISTICS, SWEEP
from resourcepool.management.operating import INTERRUPTED
from resourcepool.management.translated import TranslatedCommand
from resourcepool.phrases import shown
from resourcepool.sweeps import sweep as sweeps

JOBS = ((SWEEP, sweeps.sweep), (STATISTICS, sweeps.refresh_statistics), (PRUNE, sweeps.prune))


class Command(TranslatedCommand):
    about = gettext_lazy(
        "Returns to service what is due, tells of leases that ran out, writes down how the pools stand, and removes old"
        " history. Nothing depends on it for being correct; the dashboard's charts and alarms do."
        " Example: manage.py resourcepool_sweep --every 60"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--every", type=float, metavar="SECONDS", help=_("repeat until Ctrl-C or SIGTERM"))

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            every = options["every"]
            if every is None:
                self._sweep()
            else:
                self._repeat(checked.seconds("--every", every, least=1))
        except ResourcePoolError as error:
            raise CommandError(shown(error)) from error
        except KeyboardInterrupt:
            raise CommandError(
                _("interrupted; what is left is done by the next one"), returncode=INTERRUPTED
            ) from None

    def _repeat(self, pause: float) -> None:
        while True:
            try:
                self._sweep()
            except ResourcePoolError as error:  # the next one may find the database back
                self.stderr.write(shown(error))
            threading.Event().wait(pause)

    def _sweep(self) -> None:
        for name, job in JOBS:
            done = job()
            self.stdout.write(f"{shown(name)}: {shown('being done elsewhere' if done is None else done)}")
