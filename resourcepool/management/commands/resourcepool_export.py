"""``manage.py resourcepool_export``: exports resources or their events as CSV or JSON."""

import datetime
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.db import connections, router

from resourcepool import options as checked
from resourcepool.db.dialect import read_clock
from resourcepool.history.models import Event
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
from resourcepool.status.snapshots import as_data
from resourcepool.status.times import with_zone
from resourcepool.translation import gettext as _, gettext_lazy

logger = logging.getLogger(__name__)

MAX_PERIOD = 3_650 * checked.DAY
PRIVATE = 0o600
MAX_FILE_NAME = 4_096  # characters


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
            arg("--format", _("lines: one JSON object per line"), choices=[*FORMATS], default="csv"),
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
        file_name = one_line(file, MAX_FILE_NAME)
        _refuse_wrong_combinations(model, options)
        if options["with_secrets"]:
            self.confirm(_("Write passwords in plain text to %s?") % file_name, yes=options["yes"])
        names, rows = _records(model, options)
        count = 0

        def counted() -> Iterator[export.Record]:
            nonlocal count
            for count, record in enumerate(rows, 1):  # noqa: B007 (counted)
                yield record

        lines = FORMATS[options["format"]](names, counted(), is_escaped=not options["with_secrets"])
        with private_file(file) if file else nullcontext(_StandardOutput(self.stdout)) as out:
            for line in lines:
                out.write(line)
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


def _csv(names: Sequence[str], records: Iterable[export.Record], *, is_escaped: bool) -> Iterator[str]:
    # Files for resourcepool_import are not escaped for spreadsheets.
    return export.csv_lines(
        names, records, (lambda value: escape_formulas(_text(value))) if is_escaped else _text
    )


def _json(names: Sequence[str], records: Iterable[export.Record], **_: Any) -> Iterator[str]:
    """Yield an array of objects."""
    before = "["
    for record in records:
        yield before + json.dumps(record, default=as_data)
        before = ",\n"
    yield "[]\n" if before == "[" else "]\n"


def _json_lines(names: Sequence[str], records: Iterable[export.Record], **_: Any) -> Iterator[str]:
    """Yield one object per line."""
    return (json.dumps(record, default=as_data) + "\n" for record in records)


FORMATS: dict[str, Callable[..., Iterator[str]]] = {"csv": _csv, "json": _json, "lines": _json_lines}


@contextmanager
def private_file(name: str) -> Iterator[Any]:
    """Open a new file that only its owner may read; remove it if the block fails.

    Raises:
        CommandError: it exists, or cannot be written.
    """
    path = Path(name)
    try:
        # An existing file may be readable to others, or be a link to another file.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    except FileExistsError:
        raise CommandError(_("%s exists; choose another name") % one_line(name, MAX_FILE_NAME)) from None
    except OSError as error:
        raise CommandError(f"{one_line(name, MAX_FILE_NAME)}: {error.strerror or error}") from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _text(value: Any) -> Any:
    if value is None:
        return ""
    return value if isinstance(value, str | int | float) else as_data(value)
