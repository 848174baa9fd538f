"""``manage.py resourcepool_export``: exports resources or their events as CSV or JSON."""

import datetime
import logging
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

from django.core.management.base import CommandError
from django.db import connections, router

from resourcepool import options as checked
from resourcepool.db.dialect import read_clock
from resourcepool.history.models import Event
from resourcepool.management import record_writers
from resourcepool.management.arguments import (
    Argument,
    arg,
    criteria,
    flag,
    pool_models,
    selection_arguments,
    span_or_time,
    yes,
)
from resourcepool.management.base import OperatorCommand, actor
from resourcepool.management.layout import one_line, printable_lines
from resourcepool.models import Proxy
from resourcepool.resources.registry import select_resources
from resourcepool.status import export
from resourcepool.status.export import escape_formulas
from resourcepool.status.times import with_zone
from resourcepool.translation import gettext as _, gettext_lazy

logger = logging.getLogger(__name__)

WRITERS: dict[str, Callable[..., int]] = {
    "json": record_writers.write_json,
    "lines": record_writers.write_json_lines,
}
MAX_PERIOD = 3_650 * checked.DAY


class Command(OperatorCommand):
    about = gettext_lazy(
        "Exports the resources of a pool for people and spreadsheets: every field except passwords, and the"
        " state. With --events, exports their events instead. With --with-secrets, exports proxies and"
        " their passwords for resourcepool_import, into a new file that only you can read."
    )
    example = (
        "manage.py resourcepool_export proxy --where country=US > proxies.csv\n"
        "manage.py resourcepool_export proxy --events --since 2h --until 1h --format lines\n"
        "manage.py resourcepool_export proxy --events --since 2026-11-27T14:00 --until 2026-11-27T15:00\n"
        "manage.py resourcepool_export proxy --with-secrets --output backup.csv"
    )
    interrupted = gettext_lazy("unfinished files are removed")
    encoding = "utf-8"  # as in a file: no character is lost

    def arguments(self) -> list[Argument]:
        last = _("the start of the period: a duration before now (90s, 15m, 2h, 7d), or a time; default: 24h")
        return [
            arg("pool", _("default: resourcepool.Proxy"), nargs="?", default="resourcepool.Proxy"),
            arg("--format", _("lines: one JSON object per line"), choices=["csv", *WRITERS], default="csv"),
            arg("--output", _("write to this new file instead of standard output"), metavar="FILE"),
            *selection_arguments(),
            flag("--with-secrets", _("include passwords, for resourcepool_import; asks for confirmation")),
            flag("--events", _("export the events of the pool")),
            arg("--since", last, type=span_or_time, metavar="SPAN|TIME"),
            arg("--until", _("the end of the period; default: now"), type=span_or_time, metavar="SPAN|TIME"),
            yes(),
        ]

    def run(self, **options: Any) -> None:
        (model,), file = pool_models(options["pool"]), options["output"]
        file_name = one_line(file, record_writers.MAX_FILE_NAME)
        _refuse_wrong_combinations(model, options)
        if options["with_secrets"]:
            self.confirm(_("Write passwords in plain text to %s?") % file_name, yes=options["yes"])
        names, rows = _records(model, options)
        with record_writers.private_file(file) if file else nullcontext(_StandardOutput(self.stdout)) as out:
            if options["format"] == "csv":
                # Files for resourcepool_import are not escaped for spreadsheets.
                count = record_writers.write_csv(
                    out, names, rows, None if options["with_secrets"] else escape_formulas
                )
            else:
                count = WRITERS[options["format"]](out, names, rows)
        if options["with_secrets"]:
            logger.warning("%s wrote %d proxies with their passwords to a file", actor(), count)
        if file:
            self.stdout.write(_("%(count)s written to %(file)s") % {"count": f"{count:,}", "file": file_name})
        if not count:
            raise CommandError(_("nothing to export"))


class _StandardOutput:
    """Standard output as a file: adds no new lines, replaces control characters on a terminal."""

    def __init__(self, out: Any) -> None:
        self._out = out

    def write(self, text: str) -> None:
        if self._out.isatty():
            text = printable_lines(text)
        self._out.write(text, ending="")


def _records(model: Any, options: dict[str, Any]) -> tuple[list[str], Iterator[export.Record]]:
    if options["events"]:
        since = checked.seconds("--since", _ago(options["since"], checked.DAY), least=1, most=MAX_PERIOD)
        until = checked.seconds("--until", _ago(options["until"], 0.0), most=MAX_PERIOD)
        return export.event_columns(), export.event_records(model, since, until)
    rows = select_resources(model, (), criteria(model, options["tag"], options["where"]))
    secret = options["with_secrets"]
    exported = export.import_records(rows) if secret else export.resource_records(rows)
    return export.resource_columns(model, to_import=secret), exported


def _ago(value: float | datetime.datetime | None, default: float) -> float:
    """Return how many seconds ago an option means, by the database's clock; in the future: 0."""
    if not isinstance(value, datetime.datetime):
        return default if value is None else value
    now = with_zone(read_clock(connections[router.db_for_read(Event)]))
    return max(0.0, (now - value).total_seconds())


def _refuse_wrong_combinations(model: Any, options: dict[str, Any]) -> None:
    secret, events = options["with_secrets"], options["events"]
    selects = options["tag"] or options["where"]
    rules = (
        (options["since"] is not None and not events, _("--since requires --events")),
        (options["until"] is not None and not events, _("--until requires --events")),
        (
            events and (secret or selects),
            _("--events cannot be combined with --with-secrets, --tag or --where"),
        ),
        (secret and not issubclass(model, Proxy), _("--with-secrets is for resourcepool.Proxy only")),
        (secret and not options["output"], _("--with-secrets requires --output FILE")),
        (
            secret and options["format"] != "csv",
            _("--with-secrets requires --format csv, which resourcepool_import reads"),
        ),
    )
    for is_wrong, why in rules:
        if is_wrong:
            raise CommandError(why)
