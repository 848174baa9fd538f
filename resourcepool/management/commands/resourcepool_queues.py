"""``manage.py resourcepool_queues``: which server has which queue, what would move, and what operators change."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

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
from resourcepool.queues import administration
from resourcepool.queues.ids import queue_ids
from resourcepool.queues.models import MAX_NAME, MAX_WEIGHT
from resourcepool.queues.planning.assignment import Member
from resourcepool.queues.planning.strategies import STRATEGIES
from resourcepool.status.queues.alarms import queue_alarms, stuck_drains
from resourcepool.status.queues.forecast import forecast
from resourcepool.status.queues.moves import moves
from resourcepool.status.queues.queue_groups import QueueGroupStatus, queue_group, queue_groups
from resourcepool.status.queues.queues import missing_server_hint, queues_named, queues_of
from resourcepool.status.snapshots import as_data

ON_THE_MAP = 2_000  # queues
LATEST = 1_000  # moves
# Settings of a new queue group: the option of each, and what --help says of it.
SPANS = {
    "heartbeat_every": ("--heartbeat", gettext_lazy("with --new: how often a server renews itself, e.g. 1s")),
    "judge_dead_after": (
        "--judge-dead",
        gettext_lazy("with --new: without a heartbeat for so long, a server has lost its queues"),
    ),
    "reload_every": ("--reload", gettext_lazy("with --new: no server looks for changes more often than that")),
    "handover_timeout": (
        "--grace",
        gettext_lazy("with --new: so long a server may finish its work on a queue that is to go elsewhere"),
    ),
}


class Command(CommandGroup):
    about = gettext_lazy(
        "Shows which server has which queue and why, tries out what would move, and changes queue groups and queues."
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

        of_each = _("text that is given to the server of each")
        queues = arg("queue", _("queues; 0..63 are 64 of them"), nargs="+", metavar="QUEUE")
        needed = _("only servers with this label get them; may be repeated: all of the labels")
        about = [arg("--parameter", of_each, default=""), repeatable("--label", needed, "KEY=VALUE")]
        new = [flag("--new", _("make the queue group, too"))]
        new += [arg(option, of, dest=key, type=span, metavar="SPAN") for key, (option, of) in SPANS.items()]
        new += [arg("--strategy", _("with --new: who gets which"), choices=list(STRATEGIES))]
        yield changes("add", _("adds queues; with --new, the queue group, too"), self.add, queues, *about, *new)

        instead = _("instead of the labels they have; may be repeated: all of the labels")
        about = [arg("--parameter", of_each), repeatable("--label", instead, "KEY=VALUE")]
        about += [flag("--no-label", _("any server may have them"))]
        gives = _("gives queues another parameter or other labels")
        yield changes("change", gives, self.change, queues, *about)

        foresees = [flag("--dry-run", _("only say what would move and why")), limit_argument(100)]
        removes = _("removes queues, each when its server has finished with it")
        yield changes("remove", removes, self.remove, queues, *foresees)
        to = arg("--to", _("a server's name"), required=True, metavar="NAME")
        pins = _("has queues go to the server of a name, whenever there is one")
        yield changes("pin", pins, self.pin, queues, to)
        yield changes("unpin", _("ends pin"), self.unpin, queues)
        servers = arg("server", _('"web-3" (all of that name) or "web-3 #17"'), nargs="+", metavar="SERVER")
        drains = _("has servers give up all their queues and get no more, while they stay")
        yield changes("drain", drains, self.drain, servers, *foresees)
        yield changes("undrain", _("ends drain"), self.undrain, servers)
        pauses = _("has the servers begin no more work; who has which queue stays")
        yield changes("pause", pauses, self.pause)
        yield changes("resume", _("ends pause"), self.resume)

    def add(self, options: Options) -> None:
        name, ids = options["queue_group"], queue_ids(options["queue"])
        settings = {one: options[one] for one in (*SPANS, "strategy") if options[one] is not None}
        of_each = {"parameter": options["parameter"], "labels": parse_labels(options["label"]), "by": actor()}
        if options["new"]:
            try:
                administration.create(name, ids, **of_each, **settings)
            except BadOption as error:
                raise error.of(_option(error.name)) from None
        elif settings:
            first = next(iter(settings))
            why = _("only with --new; later the admin changes it")
            raise BadOption(_option(first), settings[first], because=why)
        else:
            administration.add_queues(name, ids, **of_each)
        self._say_how_many(ngettext("Added %s queue.", "Added %s queues.", len(ids)), len(ids))

    def change(self, options: Options) -> None:
        name, ids, labels = options["queue_group"], queue_ids(options["queue"]), parse_labels(options["label"])
        if options["no_label"] and labels:
            raise BadOption("--no-label", options["label"], because=_("without --label"))
        changes = {} if options["parameter"] is None else {"parameter": options["parameter"]}
        if labels or options["no_label"]:
            changes["labels"] = labels
        if not changes:
            raise BadOption("change", name, because=_("with --parameter, --label or --no-label"))
        administration.change_queues(name, ids, by=actor(), **changes)
        self._say_how_many(ngettext("Changed %s queue.", "Changed %s queues.", len(ids)), len(ids))

    def remove(self, options: Options) -> None:
        ids = queue_ids(options["queue"])
        if options["dry_run"]:
            self.show(*_foreseen(options, removing=ids))
            return
        count = administration.remove_queues(options["queue_group"], ids, by=actor())
        text = ngettext(
            "Removes %s queue, as soon as its server has finished its work on it.",
            "Removes %s queues, each as soon as its server has finished its work on it.",
            count,
        )
        self._say_how_many(text, count)

    def pin(self, options: Options) -> None:
        name, to, ids = options["queue_group"], options["to"], queue_ids(options["queue"])
        if not to:
            raise BadOption("--to", to, _("a server's name; `unpin` ends a pin"))
        count = administration.pin(name, ids, to, by=actor())
        text = ngettext("Pinned %s queue.", "Pinned %s queues.", count)
        self._say_how_many(text, count, missing_server_hint(name, to))

    def unpin(self, options: Options) -> None:
        name, ids = options["queue_group"], queue_ids(options["queue"])
        was_pinned = any(queue.pin for queue in queues_named(queue_group(name), ids))
        count = administration.pin(name, ids, "", by=actor())
        if was_pinned:
            self._say_how_many(ngettext("Unpinned %s queue.", "Unpinned %s queues.", count), count)
        else:
            self._say(_("None of them was pinned."), changed=0)

    def drain(self, options: Options) -> None:
        name = options["queue_group"]
        if options["dry_run"]:
            self.show(*_foreseen(options, draining=options["server"]))
            return
        servers = administration.drain(name, *options["server"], by=actor())
        warnings = [alarm.text for alarm in stuck_drains(queue_group(name))]
        lines = [_("Drains: %s.") % ", ".join(map(one_line, servers)), *warnings]
        self._say("\n".join(lines), servers=servers, **({"warnings": warnings} if warnings else {}))

    def undrain(self, options: Options) -> None:
        name = options["queue_group"]
        drained = {str(one) for one in queue_group(name).servers if one.is_draining}
        servers = administration.undrain(name, *options["server"], by=actor())
        text = _("Gets queues again: %s.") if drained & {*servers} else _("None of them was draining: %s.")
        self._say(text % ", ".join(map(one_line, servers)), servers=servers)

    def pause(self, options: Options) -> None:
        administration.pause(options["queue_group"], by=actor())
        text = _(
            "Paused: no more work begins on the queues of %s; each server hears of it with its next heartbeat."
        )
        self._say(text % one_line(options["queue_group"]), paused=True)

    def resume(self, options: Options) -> None:
        name = options["queue_group"]
        was_paused = queue_group(name).is_paused
        administration.resume(name, by=actor())
        goes_on = _("Resumed: work on the queues of %s goes on with each server's next heartbeat.")
        text = goes_on if was_paused else _("%s was not paused.")
        self._say(text % one_line(name), paused=False)

    def _say_how_many(self, text: str, count: int, warnings: str = "") -> None:
        self._say(" ".join([text % f"{count:,}", *([warnings] if warnings else [])]), changed=count)

    def _say(self, text: str, **result: Any) -> None:
        self.show(result, [text])


def _of_type(**how: Any) -> Argument:
    return arg("queue_group", _("the name of the queue group"), metavar="QUEUE_GROUP", **how)


def _readings() -> Iterator[Subcommand]:
    these = _("only these queues, each with all that is known of it; 0..63 are 64 of them")
    some = arg("queue", these, nargs="*", default=[], metavar="QUEUE")
    shows = _("how servers and queues stand; the default")
    yield query("show", shows, _look, _of_type(nargs="?"), some, limit_argument(20))

    left = _('without this server: "web-3" (all of that name) or "web-3 #17"; may be repeated')
    one_more = _("with one more server, such as web-4, or web-4:2 for weight 2; may be repeated")
    joined = repeatable("--with", one_more, "NAME[:WEIGHT]", dest="joining")
    theirs = repeatable("--labels", _("a label of the servers of --with; may be repeated"), "KEY=VALUE")
    who = [repeatable("--without", left, "SERVER"), joined, theirs]
    plans = _("what would move if servers left or joined; changes nothing")
    yield query("plan", plans, _plan, _of_type(), *who, limit_argument(100))


def _look(options: Options) -> Report:
    name = options["queue_group"]
    found = queue_groups() if name is None else [queue_group(name)]
    wrong = sorted(queue_alarms(found), key=lambda alarm: (not alarm.is_severe, alarm.pool))
    data, parts = _all(found) if name is None else _one(found[0], queue_ids(options["queue"]), options["limit"])
    return {"queue_groups": found, **data, "alarms": wrong}, [*parts, *alarms_as_text(wrong)]


def _all(found: Sequence[QueueGroupStatus]) -> Report:
    add = "`manage.py resourcepool_queues add <queue group> <queue> .. --new`"
    return {}, [table(found, report.QUEUE_GROUPS) if found else _("No queue group yet; %s makes one.") % add]


def _one(one: QueueGroupStatus, ids: Sequence[str], limit: int) -> Report:
    if ids:
        queues = queues_named(one, ids)
        moved = moves(one.name, of=[queue.pk for queue in queues], limit=limit)
        parts = [part for queue in queues[:limit] for part in ("", *report.queue_as_text(queue, one))]
        parts += more_rows_note(limit, len(queues))
    else:
        queues, moved = queues_of(one, limit=max(ON_THE_MAP, limit)), moves(one.name, limit=LATEST)
        parts = ["", *report.servers_as_text(one.servers, limit)]
        parts += report.map_as_text(queues, one.servers, one.queues, limit)
    data = {"queues": queues, "moves": moved[:limit]}
    return data, [*report.settings_as_text(one), *parts, "", report.moves_as_text(moved, limit)]


def _plan(options: Options) -> Report:
    labels = parse_labels(options["labels"], "--labels")
    joining = [_member(number, word, labels) for number, word in enumerate(options["joining"], 1)]
    return _foreseen(options, without=options["without"], joining=joining)


def _foreseen(options: Options, **what: Any) -> Report:
    found, limit = forecast(options["queue_group"], **what), options["limit"]
    data = as_data(replace(found, changes=found.changes[:limit]))
    return {**data, "changes_total": len(found.changes)}, report.forecast_as_text(found, limit)


def _member(number: int, word: str, labels: dict[str, str]) -> Member:
    """Return the server that NAME or NAME:WEIGHT describes, which is not there yet; raises BadOption."""
    name, colon, weight = word.rpartition(":")
    if not colon:
        name, weight = word, "1"
    if not re.fullmatch("[0-9]{1,9}", weight):
        raise BadOption("--with", word, _("NAME or NAME:WEIGHT, such as web-4:2"))
    name = checked.text("--with", name, most=MAX_NAME)
    return Member(-number, name, checked.whole("--with", int(weight), least=1, most=MAX_WEIGHT), labels)


def _option(setting: str) -> str:
    return SPANS[setting][0] if setting in SPANS else f"--{setting}" if setting == "strategy" else setting
