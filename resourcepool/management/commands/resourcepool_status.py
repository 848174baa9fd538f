"""``manage.py resourcepool_status``: how the pools stand, and who holds what."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.history.leaks import open_leaks
from resourcepool.management import arguments, watching
from resourcepool.management import status_report as report
from resourcepool.management.base import OperatorCommand
from resourcepool.management.layout import as_text, more
from resourcepool.status.alarms import alarms_of
from resourcepool.status.holders import Holding, counts, holdings
from resourcepool.status.jobs import jobs
from resourcepool.status.pools import pools
from resourcepool.status.queues.task_types import task_types

Leases = list[tuple[list[Holding], int]]


class Command(OperatorCommand):
    about = gettext_lazy(
        "Shows each pool: how many are free, leased and away, who waits and for how long, what is wrong; with a pool,"
        " or --leases, --holder or --host, also who holds what, since when, and when it runs out unless renewed."
    )
    example = (
        "manage.py resourcepool_status\n"
        "manage.py resourcepool_status proxy --host crawler3\n"
        "manage.py resourcepool_status proxy --watch 5"
    )
    codes = gettext_lazy(
        "Exit codes: 0 done, or --watch ended by Ctrl-C; 1 nothing found, or refused; 2 not understood;"
        " 130 interrupted."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("pool", nargs="?", help=_("only this pool (app.Model, or Model)"))
        parser.add_argument(
            "--leases", action="store_true", help=_("list the running leases of every pool, too")
        )
        parser.add_argument("--holder", default="", help=_("only leases of exactly this holder"))
        parser.add_argument("--host", default="", help=_("only leases of processes on this host"))
        watching.add_watch(parser)
        arguments.add_limit(parser, 50)

    def run(self, **options: Any) -> None:
        """See ``OperatorCommand``."""
        models = arguments.pools(options["pool"])
        watching.watch(self, lambda: self._show(models, **options), options)

    def _show(self, models: list[Any], **options: Any) -> None:
        asks_for_some = bool(options["holder"] or options["host"])
        wants_leases = asks_for_some or options["leases"] or options["pool"] is not None
        stand = _Stand(models, options["pool"])
        found = _leases(models, **options) if wants_leases else None
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(stand, found), default=as_text))
        else:
            self.stdout.write("\n".join(_as_text(stand, found)))
        if asks_for_some and not found and options["watch"] is None:
            raise SystemExit(1)


def _leases(models: list[Any], *, holder: str, host: str, limit: int, **_options: Any) -> Leases:
    """Return (the leases to show, how many there are) for every pool that has any."""
    found = counts(models, holder=holder, host=host)
    return [(holdings(model, holder=holder, host=host, limit=limit), total) for model, total in found.items()]


class _Stand:
    """How everything stands that was asked for: read once, shown as text or as JSON."""

    def __init__(self, models: list[Any], label: str | None) -> None:
        self.pools, self.jobs = pools(models), jobs()
        leaks = open_leaks([one.label for one in self.pools])
        of_queues = task_types() if label is None else ()
        self.alarms = alarms_of(self.pools, self.jobs, leaks, of_queues)
        self.is_one = label is not None


def _as_text(stand: _Stand, found: Leases | None) -> Iterator[str]:
    yield from report.pools_as_text(stand.pools)
    if not stand.is_one:
        yield from ["", *report.jobs_as_text(stand.jobs)]
    if stand.alarms:
        yield from ["", _("Problems:"), *(f"  {line}" for line in report.alarms_as_text(stand.alarms))]
    for some, total in found or []:
        yield from ["", *report.holdings_as_text(some), *more(len(some), total)]
    if found == []:
        yield from ["", _("No running lease.")]


def _as_json(stand: _Stand, found: Leases | None) -> dict[str, Any]:
    result: dict[str, Any] = {
        "pools": [report.pool_as_json(one) for one in stand.pools],
        "jobs": [asdict(job) for job in stand.jobs.values()],
        "alarms": [asdict(alarm) for alarm in stand.alarms],
    }
    if found is not None:
        leases = [report.holding_as_json(one) for some, _total in found for one in some]
        result |= {"leases": leases, "leases_total": sum(total for _some, total in found)}
    return result
