"""``manage.py resourcepool_queues``: shows, forecasts and changes the assignment of queues to servers."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from resourcepool import options as checked
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
from resourcepool.management.layout import more_rows_note, one_line
from resourcepool.management.status_report import alarms_as_text
from resourcepool.management.subcommands import CommandGroup, Options, Subcommand, action, query
from resourcepool.management.tables import table
from resourcepool.management.watch_mode import Report
from resourcepool.operations.queues import DRAIN, PAUSE, PIN, REMOVE, RESUME, UNDRAIN, UNPIN
from resourcepool.queues import administration
from resourcepool.queues.ids import expand_ids
from resourcepool.queues.models import MAX_NAME, MAX_WEIGHT
from resourcepool.queues.planning.assignment import Member
from resourcepool.queues.planning.strategies import STRATEGIES
from resourcepool.status.queues.alarms import queue_alarms
from resourcepool.status.queues.forecast import forecast
from resourcepool.status.queues.moves import moves
from resourcepool.status.queues.queue_groups import QueueGroupStatus, queue_group, queue_groups
from resourcepool.status.queues.queues import queues_named, queues_of
from resourcepool.status.snapshots import as_data
from resourcepool.translation import gettext as _
from resourcepool.translation import gettext_lazy, ngettext

MAX_QUEUES_ON_MAP = 2_000
MAX_MOVES = 1_000
# Intervals of a new queue group: setting: (option, help).
SPANS = {
    "heartbeat_every": (
        "--heartbeat",
        gettext_lazy("with --new: how often a server sends a heartbeat, e.g. 1s"),
    ),
    "judge_dead_after": (
        "--judge-dead",
        gettext_lazy("with --new: time without a heartbeat before a server loses its queues"),
    ),
    "reload_every": (
        "--reload",
        gettext_lazy("with --new: minimum time between two checks for changes by one server"),
    ),
    "handover_timeout": (
        "--handover-timeout",
        gettext_lazy("with --new: how long a server may keep working on a queue that is being handed over"),
    ),
}


class Command(CommandGroup):
    about = gettext_lazy(
        "Shows which server has which queue and why, forecasts moves, and changes queue groups and queues."
    )
    example = (
        "manage.py resourcepool_queues show orders\n"
        "manage.py resourcepool_queues show orders 7 8\n"
        "manage.py resourcepool_queues plan orders --without web-3 --with web-4:2\n"
        "manage.py resourcepool_queues add orders 0..63 --new --grace 2m\n"
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
        new += [
            arg(option, about, dest=key, type=span, metavar="SPAN") for key, (option, about) in SPANS.items()
        ]
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
        yield changes("remove", about, self.remove, queues, *dry_run)
        to = arg("--to", _("a server's name"), required=True, metavar="NAME")
        yield changes("pin", _("pins queues to a server name"), self.pin, queues, to)
        yield changes("unpin", _("removes pins"), self.unpin, queues)
        about = _('a name (all servers with it), such as "web-3", or one server, such as "web-3 #17"')
        servers = arg("server", about, nargs="+", metavar="SERVER")
        about = _("drains servers: they hand over all queues but keep running")
        yield changes("drain", about, self.drain, servers, *dry_run)
        yield changes("undrain", _("ends a drain"), self.undrain, servers)
        yield changes("pause", _("pauses work; assignments stay"), self.pause)
        yield changes("resume", _("ends a pause"), self.resume)

    def add(self, options: Options) -> None:
        name, ids = options["queue_group"], expand_ids(options["queue"])
        settings = {name: options[name] for name in (*SPANS, "strategy") if options[name] is not None}
        columns = {"parameter": options["parameter"], "labels": parse_labels(options["label"]), "by": actor()}
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
            administration.add_queues(name, ids, **columns)
        self._say_how_many(ngettext("Added %s queue.", "Added %s queues.", len(ids)), len(ids))

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
        self._say_how_many(ngettext("Changed %s queue.", "Changed %s queues.", len(ids)), len(ids))

    def remove(self, options: Options) -> None:
        ids = expand_ids(options["queue"])
        if options["dry_run"]:
            self.show(*_forecast(options, removing=ids))
            return
        count = REMOVE.do(options["queue_group"], ids, by=actor())
        text = ngettext(
            "%s queue will be removed once its server has finished working on it.",
            "%s queues will be removed, each once its server has finished working on it.",
            count,
        )
        self._say_how_many(text, count)

    def pin(self, options: Options) -> None:
        name, to, ids = options["queue_group"], options["to"], expand_ids(options["queue"])
        if not to:
            raise BadOption("--to", to, _("a server's name; `unpin` removes a pin"))
        count = PIN.do(name, ids, server=to, by=actor())
        text = ngettext("Pinned %s queue.", "Pinned %s queues.", count)
        self._say_how_many(text, count, *PIN.warnings(name, server=to))

    def unpin(self, options: Options) -> None:
        name, ids = options["queue_group"], expand_ids(options["queue"])
        was_pinned = any(queue.pin for queue in queues_named(queue_group(name), ids))
        count = UNPIN.do(name, ids, by=actor())
        if was_pinned:
            self._say_how_many(ngettext("Unpinned %s queue.", "Unpinned %s queues.", count), count)
        else:
            self._say(_("None of these queues was pinned."), changed=0)

    def drain(self, options: Options) -> None:
        name = options["queue_group"]
        if options["dry_run"]:
            self.show(*_forecast(options, draining=options["server"]))
            return
        servers, warnings = DRAIN.do(name, options["server"], by=actor()), DRAIN.warnings(name)
        lines = [_("Draining: %s.") % ", ".join(map(one_line, servers)), *warnings]
        self._say("\n".join(lines), servers=servers, **({"warnings": warnings} if warnings else {}))

    def undrain(self, options: Options) -> None:
        name = options["queue_group"]
        drained = {str(one) for one in queue_group(name).servers if one.is_draining}
        servers = UNDRAIN.do(name, options["server"], by=actor())
        text = _("No longer draining: %s.") if drained & {*servers} else _("None was draining: %s.")
        self._say(text % ", ".join(map(one_line, servers)), servers=servers)

    def pause(self, options: Options) -> None:
        PAUSE.do(options["queue_group"], [], by=actor())
        text = _("Paused: servers start no more work on the queues of %s from their next heartbeat on.")
        self._say(text % one_line(options["queue_group"]), paused=True)

    def resume(self, options: Options) -> None:
        name = options["queue_group"]
        was_paused = queue_group(name).is_paused
        RESUME.do(name, [], by=actor())
        resumed = _("Resumed: servers start work on the queues of %s again from their next heartbeat on.")
        text = resumed if was_paused else _("%s was not paused.")
        self._say(text % one_line(name), paused=False)

    def _say_how_many(self, text: str, count: int, *warnings: str) -> None:
        self._say(" ".join([text % f"{count:,}", *warnings]), changed=count)

    def _say(self, text: str, **result: Any) -> None:
        self.show(result, [text])


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
    return {}, [table(statuses, report.QUEUE_GROUPS) if statuses else empty]


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
    return SPANS[setting][0] if setting in SPANS else f"--{setting}" if setting == "strategy" else setting
