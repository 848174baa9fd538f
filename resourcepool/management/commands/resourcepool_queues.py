"""``manage.py resourcepool_queues``: shows, forecasts and changes the assignment of queues to servers."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from django.db import connections

from resourcepool import options as checked
from resourcepool.db.retry import retrying
from resourcepool.exceptions import BadOption
from resourcepool.management import queues_report as report
from resourcepool.management.arguments import (
    Argument,
    arg,
    flag,
    limit_argument,
    parse_labels,
    repeatable,
    span,
)
from resourcepool.management.base import actor
from resourcepool.management.commands.resourcepool_status import alarms_as_text
from resourcepool.management.layout import FittedTable, more_rows_note, one_line
from resourcepool.management.subcommands import CommandGroup, Options, Report, Subcommand, action, query
from resourcepool.operations.operation import Applied
from resourcepool.operations.queues import (
    DRAIN,
    PAUSE,
    PIN,
    REMOVE,
    RESUME,
    UNDRAIN,
    UNPIN,
    QueueOperation,
    name_of,
)
from resourcepool.queues import administration
from resourcepool.queues.models import MAX_NAME, MAX_WEIGHT, Queue, QueueGroup, Server
from resourcepool.queues.planning.assignment import Member
from resourcepool.queues.planning.strategies import STRATEGIES
from resourcepool.queues.queries import expand_ids, find_queue_group, using_of_queues
from resourcepool.status.queues.forecast import forecast
from resourcepool.status.queues.queue_groups import QueueGroupStatus, queue_group, queue_groups
from resourcepool.status.queues.queues import moves, queues_named, queues_of
from resourcepool.status.queues.system import SYSTEM, queue_alarms
from resourcepool.status.snapshots import as_data
from resourcepool.translation import gettext as _, gettext_lazy

MAX_QUEUES_ON_MAP = 2_000
MAX_MOVES = 1_000
MODELS: dict[str, Any] = {"queue": Queue, "server": Server, "": QueueGroup}
# Intervals of a new queue group: {setting: option}.
SPANS = {
    "heartbeat_every": "--heartbeat",
    "judge_dead_after": "--judge-dead",
    "reload_every": "--reload",
    "handover_timeout": "--handover-timeout",
}


class Command(CommandGroup):
    about = gettext_lazy(
        "Shows which server has which queue and why, forecasts moves, and changes queue groups and queues."
    )
    example = (
        "manage.py resourcepool_queues show orders\n"
        "manage.py resourcepool_queues show orders 7 8\n"
        "manage.py resourcepool_queues plan orders --without web-3 --with web-4:2\n"
        "manage.py resourcepool_queues add orders 0..63 --new --handover-timeout 2m\n"
        "manage.py resourcepool_queues pin orders 7 8 --to web-3\n"
        "manage.py resourcepool_queues drain orders 'web-3 #17'\n"
        "manage.py resourcepool_queues pause orders"
    )

    def subcommands(self) -> Iterator[Subcommand]:
        yield from _readings()
        yield from self._changes()

    def _changes(self) -> Iterator[Subcommand]:
        def changes(word: str, about: str, do: Callable[[Options], None], *more: Argument) -> Subcommand:
            return action(word, about, do, _of_type(), *more, json=True)

        parameter = _("text for the server of each queue")
        queues = arg("queue", _("queues; 0..63 are 64 queues"), nargs="+", metavar="QUEUE")
        label = _("only servers with this label get the queues; repeat to require several labels")
        columns = [arg("--parameter", parameter, default=""), repeatable("--label", label, "KEY=VALUE")]
        new = [flag("--new", _("create the queue group, too"))]
        new += [_span(setting, option) for setting, option in SPANS.items()]
        new += [arg("--strategy", _("with --new: how queues are assigned"), choices=list(STRATEGIES))]
        yield changes(
            "add", _("adds queues; with --new, the queue group, too"), self.add, queues, *columns, *new
        )

        label = _("replaces all their labels; repeat to require several labels")
        columns = [arg("--parameter", parameter), repeatable("--label", label, "KEY=VALUE")]
        columns += [flag("--no-label", _("removes all labels, so that any server may have the queues"))]
        about = _("gives queues another parameter or other labels")
        yield changes("change", about, self.change, queues, *columns)

        dry_run = [flag("--dry-run", _("only show what would move and why")), limit_argument(100)]
        about = _("removes queues, each once its server has finished working on it")
        yield changes("remove", about, self.operates(REMOVE, "queue", "removing"), queues, *dry_run)
        to = arg("--to", _("a server's name"), required=True, metavar="NAME")
        yield changes("pin", _("pins queues to a server name"), self.pin, queues, to)
        yield changes("unpin", _("removes pins"), self.operates(UNPIN, "queue"), queues)
        about = _('a name (all servers with it), such as "web-3", or one server, such as "web-3 #17"')
        servers = arg("server", about, nargs="+", metavar="SERVER")
        about = _("drains servers: they hand over all queues but keep running")
        yield changes("drain", about, self.operates(DRAIN, "server", "draining"), servers, *dry_run)
        yield changes("undrain", _("ends a drain"), self.operates(UNDRAIN, "server"), servers)
        yield changes("pause", _("pauses work; assignments stay"), self.operates(PAUSE))
        yield changes("resume", _("ends a pause"), self.operates(RESUME))

    def add(self, options: Options) -> None:
        name, ids = options["queue_group"], expand_ids(options["queue"])
        settings = {name: options[name] for name in (*SPANS, "strategy") if options[name] is not None}
        columns = {"parameter": options["parameter"], "labels": parse_labels(options["label"])}
        if options["new"]:
            try:
                administration.create(name, ids, **columns, **settings)
            except BadOption as error:
                raise error.of(_option(error.name)) from None
        elif settings:
            first = next(iter(settings))
            why = _("only with --new; change it in the admin later")
            raise BadOption(_option(first), settings[first], because=why)
        else:
            administration.add_queues(name, ids, by=actor(), **columns)
        self._say_how_many(_("Added queues: %s."), len(ids))

    def change(self, options: Options) -> None:
        name, ids, labels = options["queue_group"], expand_ids(options["queue"]), parse_labels(options["label"])
        if options["no_label"] and labels:
            raise BadOption("--no-label", options["label"], because=_("not together with --label"))
        changes = {} if options["parameter"] is None else {"parameter": options["parameter"]}
        if labels or options["no_label"]:
            changes["labels"] = labels
        if not changes:
            raise BadOption("change", name, because=_("add --parameter, --label or --no-label"))
        administration.change_queues(name, ids, by=actor(), **changes)
        self._say_how_many(_("Changed queues: %s."), len(ids))

    def pin(self, options: Options) -> None:
        if not options["to"]:
            raise BadOption("--to", options["to"], _("a server's name; `unpin` removes a pin"))
        self.operate_on(PIN, options, "queue", server=options["to"])

    def operates(
        self, operation: QueueOperation, kind: str = "", change: str = ""
    ) -> Callable[[Options], None]:
        """Return the subcommand of an operation.

        Args:
            kind: the argument with the names: "queue", "server", or "" for an operation on the queue group.
            change: the argument of ``forecast`` for a dry run, if it has one.
        """

        def run(options: Options) -> None:
            if options.get("dry_run"):
                self.show(*_forecast(options, **{change: _names(options, kind)}))
            else:
                self.operate_on(operation, options, kind)

        return run

    def operate_on(self, operation: QueueOperation, options: Options, kind: str, **answers: str) -> None:
        """Run an operation on the named queues or servers, or on the queue group; show what it has changed."""
        queue_group, using, names = options["queue_group"], using_of_queues(), _names(options, kind)
        rows = retrying(connections[using], lambda: _rows(queue_group, kind, names, using))
        changing = [row for row in rows if operation.is_offered(row)]
        operation.do(queue_group, names, by=actor(), **answers)
        applied = Applied(operation=operation, found=len(rows), changed=len(changing))
        changed = [one_line(name_of(row)) for row in changing]
        texts = [*applied.done_messages(MODELS[kind], changed), applied.skipped_message]
        warnings = list(operation.warnings(queue_group, **answers))
        result = {"changed": applied.changed, "names": changed, "warnings": warnings}
        self.show(result, filter(None, [*texts, *warnings]))

    def _say_how_many(self, text: str, count: int) -> None:
        self.show({"changed": count}, [text % f"{count:,}"])


def _names(options: Options, kind: str) -> list[str]:
    """Return the ids of the queues, or the names of the servers, that the operator named."""
    return expand_ids(options[kind]) if kind == "queue" else options.get(kind, [])


def _rows(queue_group: str, kind: str, names: list[str], using: str) -> list[Any]:
    """Return the existing ones of the named queues or servers, or the queue group."""
    row = find_queue_group(queue_group, using)
    if kind == "queue":
        queues = Queue.objects.using(using).filter(queue_group=row, queue_id__in=names)
        return list(queues.order_by("pk"))
    if kind == "server":
        servers = Server.objects.using(using).alive().filter(queue_group=row)
        return [server for server in servers if server.name in names or str(server) in names]
    return [row]


def _span(setting: str, option: str) -> Argument:
    about: Any = QueueGroup._meta.get_field(setting)
    return arg(option, _("with --new: %s") % about.help_text, dest=setting, type=span, metavar="SPAN")


def _of_type(**more_options: Any) -> Argument:
    return arg("queue_group", _("the name of the queue group"), metavar="QUEUE_GROUP", **more_options)


def _readings() -> Iterator[Subcommand]:
    about = _("show only these queues, in detail; 0..63 are 64 queues")
    queues = arg("queue", about, nargs="*", default=[], metavar="QUEUE")
    about = _("shows server and queue status; the default")
    yield query("show", about, _show, _of_type(nargs="?"), queues, limit_argument(20))

    about = _('without this server: "web-3" (all servers with the name) or "web-3 #17"; may be repeated')
    without = repeatable("--without", about, "SERVER")
    about = _("with one more server, such as web-4, or web-4:2 for weight 2; may be repeated")
    joining = repeatable("--with", about, "NAME[:WEIGHT]", dest="joining")
    labels = repeatable("--labels", _("a label of the servers of --with; may be repeated"), "KEY=VALUE")
    about = _("shows what would move if servers left or joined; changes nothing")
    yield query("plan", about, _plan, _of_type(), without, joining, labels, limit_argument(100))


def _show(options: Options) -> Report:
    name = options["queue_group"]
    statuses = queue_groups() if name is None else [queue_group(name)]
    alarms = sorted(queue_alarms(statuses), key=lambda alarm: (not alarm.is_severe, alarm.pool))
    if name is None:
        data, parts = _show_all(statuses)
    else:
        data, parts = _show_one(statuses[0], expand_ids(options["queue"]), options["limit"])
    return {"queue_groups": statuses, **data, "alarms": alarms}, [*parts, *alarms_as_text(alarms)]


def _show_all(statuses: Sequence[QueueGroupStatus]) -> Report:
    add = "`manage.py resourcepool_queues add <queue group> <queue> .. --new`"
    empty = _("No queue groups yet; create one with %s.") % add
    return {}, [FittedTable(statuses, SYSTEM.figures) if statuses else empty]


def _show_one(status: QueueGroupStatus, ids: Sequence[str], limit: int) -> Report:
    if ids:
        queues = queues_named(status, ids)
        latest = moves(status.name, of=[queue.pk for queue in queues], limit=limit)
        parts = [part for queue in queues[:limit] for part in ("", *report.queue_as_text(queue, status))]
        parts += more_rows_note(limit, len(queues))
    else:
        queues = queues_of(status, limit=max(MAX_QUEUES_ON_MAP, limit))
        latest = moves(status.name, limit=MAX_MOVES)
        parts = ["", *report.servers_as_text(status, limit)]
        parts += report.map_as_text(queues, status.servers, status.queues, limit)
    data = {"queues": queues, "moves": latest[:limit]}
    return data, [*report.settings_as_text(status), *parts, "", report.moves_as_text(latest, limit)]


def _plan(options: Options) -> Report:
    labels = parse_labels(options["labels"], "--labels")
    joining = [_member(number, word, labels) for number, word in enumerate(options["joining"], 1)]
    return _forecast(options, without=options["without"], joining=joining)


def _forecast(options: Options, **changes: Any) -> Report:
    result, limit = forecast(options["queue_group"], **changes), options["limit"]
    data = as_data(replace(result, changes=result.changes[:limit]))
    return {**data, "changes_total": len(result.changes)}, report.forecast_as_text(result, limit)


def _member(number: int, word: str, labels: dict[str, str]) -> Member:
    """Return the server that --with NAME or NAME:WEIGHT describes; it does not exist, so its key is negative."""
    name, colon, weight = word.rpartition(":")
    if not colon:
        name, weight = word, "1"
    if not re.fullmatch("[0-9]{1,9}", weight):
        raise BadOption("--with", word, _("NAME or NAME:WEIGHT, such as web-4:2"))
    name = checked.text("--with", name, most=MAX_NAME)
    return Member(-number, name, checked.whole("--with", int(weight), least=1, most=MAX_WEIGHT), labels)


def _option(setting: str) -> str:
    return SPANS.get(setting, f"--{setting}" if setting == "strategy" else setting)
