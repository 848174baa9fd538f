"""``manage.py resourcepool_export``: resources, or what happened to them, as CSV or JSON."""

import logging
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

from django.core.management.base import CommandError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool import options as checked
from resourcepool.management import record_writers
from resourcepool.management.arguments import (
    Argument,
    arg,
    criteria,
    flag,
    pool_models,
    selection_arguments,
    span,
    yes,
)
from resourcepool.management.base import OperatorCommand, actor
from resourcepool.management.layout import one_line, printable
from resourcepool.models import Proxy
from resourcepool.resources.registry import select_resources
from resourcepool.status.export import records
from resourcepool.status.export.cells import escape_formulas

logger = logging.getLogger(__name__)

FORMS: dict[str, Callable[..., int]] = {
    "json": record_writers.write_json,
    "lines": record_writers.write_json_lines,
}
LONGEST = 3_650 * checked.DAY


class Command(OperatorCommand):
    about = gettext_lazy(
        "Writes the resources of a pool for people and spreadsheets: every field but the passwords, and the state."
        " With --events, what happened to them instead. With --with-secrets, proxies and their passwords as"
        " resourcepool_import takes them back, into a new file that you alone can read."
    )
    example = (
        "manage.py resourcepool_export proxy --where country=US > proxies.csv\n"
        "manage.py resourcepool_export proxy --events --since 2h --format lines\n"
        "manage.py resourcepool_export proxy --with-secrets --output backup.csv"
    )
    interrupted = gettext_lazy("a file that was not finished is removed")
    encoding = "utf-8"  # as in a file: what cannot be shown must not get lost

    def arguments(self) -> list[Argument]:
        last = _("events of the last 90s, 15m, 2h, 7d; default: 24h")
        return [
            arg("pool", _("default: resourcepool.Proxy"), nargs="?", default="resourcepool.Proxy"),
            arg("--format", _("lines: one JSON object a line"), choices=["csv", *FORMS], default="csv"),
            arg("--output", _("a new file instead of standard output"), metavar="FILE"),
            *selection_arguments(),
            flag("--with-secrets", _("for resourcepool_import; asks first")),
            flag("--events", _("the history of the pool")),
            arg("--since", last, type=span, metavar="SPAN"),
            yes(),
        ]

    def run(self, **options: Any) -> None:
        (model,), file = pool_models(options["pool"]), options["output"]
        named = one_line(file, record_writers.MAX_FILE_NAME)
        _refuse_what_does_not_go_together(model, options)
        if options["with_secrets"]:
            self.confirm(_("Write passwords in plain text to %s?") % named, yes=options["yes"])
        names, found = _records(model, options)
        with record_writers.private_file(file) if file else nullcontext(_Plain(self.stdout)) as out:
            if options["format"] == "csv":
                # What is to be imported again must stay as it is, and no spreadsheet has any business with passwords.
                count = record_writers.write_csv(
                    out, names, found, None if options["with_secrets"] else escape_formulas
                )
            else:
                count = FORMS[options["format"]](out, names, found)
        if options["with_secrets"]:
            logger.warning("%s wrote %d proxies with their passwords to a file", actor(), count)
        if file:
            self.stdout.write(_("%(count)s written to %(file)s") % {"count": f"{count:,}", "file": named})
        if not count:
            raise CommandError(_("there is nothing to export"))


class _Plain:
    """Standard output as a file: no added new lines; control characters are replaced on a terminal."""

    def __init__(self, out: Any) -> None:
        self._out = out

    def write(self, text: str) -> None:
        if self._out.isatty():
            text = printable(text)
        self._out.write(text, ending="")


def _records(model: Any, options: dict[str, Any]) -> tuple[list[str], Iterator[records.Record]]:
    if options["events"]:
        since = checked.DAY if options["since"] is None else options["since"]
        since = checked.seconds("--since", since, least=1, most=LONGEST)
        return records.event_columns(), records.event_records(model, since)
    rows = select_resources(model, (), criteria(model, options["tag"], options["where"]))
    secret = options["with_secrets"]
    found = records.import_records(rows) if secret else records.resource_records(rows)
    return records.resource_columns(model, to_import=secret), found


def _refuse_what_does_not_go_together(model: Any, options: dict[str, Any]) -> None:
    secret, events = options["with_secrets"], options["events"]
    selects = options["tag"] or options["where"]
    refused = (
        (options["since"] is not None and not events, _("--since goes together with --events only")),
        (events and (secret or selects), _("--events goes with none of --with-secrets, --tag and --where")),
        (secret and not issubclass(model, Proxy), _("--with-secrets is for resourcepool.Proxy only")),
        (secret and not options["output"], _("--with-secrets writes to a file only: add --output FILE")),
        (
            secret and options["format"] != "csv",
            _("--with-secrets writes csv, which resourcepool_import reads"),
        ),
    )
    for is_wrong, why in refused:
        if is_wrong:
            raise CommandError(why)
