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
from resourcepool.management.arguments import Argument, arg, flag, labels_given, limited, many, span
from resourcepool.management.base import actor
from resourcepool.management.layout import more, plain
from resourcepool.management.status_report import problems_as_text
from resourcepool.management.tables import table
from resourcepool.management.watching import Look
from resourcepool.management.words import Options, Word, WordsCommand, act, reading
from resourcepool.queues import changing
from resourcepool.queues.ids import queue_ids
from resourcepool.queues.models import MAX_NAME, MOST_WEIGHT
from resourcepool.queues.planning.assignment import Member
from resourcepool.queues.planning.strategies import STRATEGIES
from resourcepool.status.queues.alarms import drains_in_vain, of_queues
from resourcepool.status.queues.forecast import forecast
from resourcepool.status.queues.moves import moves
from resourcepool.status.queues.queues import no_such_server, queues_named, queues_of
from resourcepool.status.queues.task_types import TaskTypeStatus, task_type, task_types
from resourcepool.status.reading import as_data

ON_THE_MAP = 2_000  # queues
LATEST = 1_000  # moves
# Settings of a new task type: the option of each, and what --help says of it.
SPANS = {
    "heartbeat_every": ("--heartbeat", gettext_lazy("with --new: how often a server renews itself, e.g. 1s")),
    "judge_dead_after": (
        "--judge-dead",
        gettext_lazy("with --new: without a heartbeat for so long, a server has lost its queues"),
    ),
    "reload_every": ("--reload", gettext_lazy("with --new: no server looks for changes more often than that")),
    "drain_within": (
        "--drain-within",
        gettext_lazy("with --new: so long a server may finish its work on a queue that is to go elsewhere"),
    ),
}


class Command(WordsCommand):
    about = gettext_lazy(
        "Shows which server has which queue and why, tries out what would move, and changes task types and queues."
    )
    example = (
        "manage.py resourcepool_queues show orders\n"
        "manage.py resourcepool_queues show orders 7 8\n"
        "manage.py resourcepool_queues plan orders --without web-3 --with web-4:2\n"
        "manage.py resourcepool_queues add orders 0..63 --new --drain-within 2m\n"
        "manage.py resourcepool_queues pin orders 7 8 --to web-3\n"
        "manage.py resourcepool_queues drain orders 'web-3 #17'\n"
        "manage.py resourcepool_queues pause orders"
    )

    def words(self) -> Iterator[Word]:
        yield from _readings()
        yield from self._changes()

    def _changes(self) -> Iterator[Word]:
        def changes(word: str, about: str, do: Callable[[Options], None], *more: Argument) -> Word:
            return act(word, about, do, _of_type(), *more, json=True)

        of_each = _("text that is given to the server of each")
        queues = arg("queue", _("queues; 0..63 are 64 of them"), nargs="+", metavar="QUEUE")
        needed = _("only servers with this label get them; may be repeated: all of the labels")
        about = [arg("--parameter", of_each, default=""), many("--label", needed, "KEY=VALUE")]
        new = [flag("--new", _("make the task type, too"))]
        new += [arg(option, of, dest=key, type=span, metavar="SPAN") for key, (option, of) in SPANS.items()]
        new += [arg("--strategy", _("with --new: who gets which"), choices=list(STRATEGIES))]
        yield changes("add", _("adds queues; with --new, the task type, too"), self.add, queues, *about, *new)

        instead = _("instead of the labels they have; may be repeated: all of the labels")
        about = [arg("--parameter", of_each), many("--label", instead, "KEY=VALUE")]
        about += [flag("--no-label", _("any server may have them"))]
        gives = _("gives queues another parameter or other labels")
        yield changes("change", gives, self.change, queues, *about)

        foresees = [flag("--dry-run", _("only say what would move and why")), limited(100)]
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
        name, ids = options["task_type"], queue_ids(options["queue"])
        settings = {one: options[one] for one in (*SPANS, "strategy") if options[one] is not None}
        of_each = {"parameter": options["parameter"], "labels": labels_given(options["label"]), "by": actor()}
        if options["new"]:
            try:
                changing.create(name, ids, **of_each, **settings)
            except BadOption as error:
                raise error.of(_option(error.name)) from None
        elif settings:
            first = next(iter(settings))
            why = _("only with --new; later the admin changes it")
            raise BadOption(_option(first), settings[first], because=why)
        else:
            changing.add_queues(name, ids, **of_each)
        self._say_how_many(ngettext("Added %s queue.", "Added %s queues.", len(ids)), len(ids))

    def change(self, options: Options) -> None:
        name, ids, labels = options["task_type"], queue_ids(options["queue"]), labels_given(options["label"])
        if options["no_label"] and labels:
            raise BadOption("--no-label", options["label"], because=_("without --label"))
        changes = {} if options["parameter"] is None else {"parameter": options["parameter"]}
        if labels or options["no_label"]:
            changes["labels"] = labels
        if not changes:
            raise BadOption("change", name, because=_("with --parameter, --label or --no-label"))
        changing.change_queues(name, ids, by=actor(), **changes)
        self._say_how_many(ngettext("Changed %s queue.", "Changed %s queues.", len(ids)), len(ids))

    def remove(self, options: Options) -> None:
        ids = queue_ids(options["queue"])
        if options["dry_run"]:
            self.show(*_foreseen(options, removing=ids))
            return
        count = changing.remove_queues(options["task_type"], ids, by=actor())
        text = ngettext(
            "Removes %s queue, as soon as its server has finished its work on it.",
            "Removes %s queues, each as soon as its server has finished its work on it.",
            count,
        )
        self._say_how_many(text, count)

    def pin(self, options: Options) -> None:
        name, to, ids = options["task_type"], options["to"], queue_ids(options["queue"])
        if not to:
            raise BadOption("--to", to, _("a server's name; `unpin` ends a pin"))
        count = changing.pin(name, ids, to, by=actor())
        text = ngettext("Pinned %s queue.", "Pinned %s queues.", count)
        self._say_how_many(text, count, no_such_server(name, to))

    def unpin(self, options: Options) -> None:
        name, ids = options["task_type"], queue_ids(options["queue"])
        was_pinned = any(queue.pin for queue in queues_named(task_type(name), ids))
        count = changing.pin(name, ids, "", by=actor())
        if was_pinned:
            self._say_how_many(ngettext("Unpinned %s queue.", "Unpinned %s queues.", count), count)
        else:
            self._say(_("None of them was pinned."), changed=0)

    def drain(self, options: Options) -> None:
        name = options["task_type"]
        if options["dry_run"]:
            self.show(*_foreseen(options, draining=options["server"]))
            return
        servers = changing.drain(name, *options["server"], by=actor())
        but = [alarm.text for alarm in drains_in_vain(task_type(name))]
        lines = [_("Drains: %s.") % ", ".join(map(plain, servers)), *but]
        self._say("\n".join(lines), servers=servers, **({"but": but} if but else {}))

    def undrain(self, options: Options) -> None:
        name = options["task_type"]
        drained = {str(one) for one in task_type(name).servers if one.is_draining}
        servers = changing.undrain(name, *options["server"], by=actor())
        text = _("Gets queues again: %s.") if drained & {*servers} else _("None of them was draining: %s.")
        self._say(text % ", ".join(map(plain, servers)), servers=servers)

    def pause(self, options: Options) -> None:
        changing.pause(options["task_type"], by=actor())
        text = _(
            "Paused: no more work begins on the queues of %s; each server hears of it with its next heartbeat."
        )
        self._say(text % plain(options["task_type"]), paused=True)

    def resume(self, options: Options) -> None:
        name = options["task_type"]
        was_paused = task_type(name).is_paused
        changing.resume(name, by=actor())
        goes_on = _("Resumed: work on the queues of %s goes on with each server's next heartbeat.")
        text = goes_on if was_paused else _("%s was not paused.")
        self._say(text % plain(name), paused=False)

    def _say_how_many(self, text: str, count: int, but: str = "") -> None:
        self._say(" ".join([text % f"{count:,}", *([but] if but else [])]), changed=count)

    def _say(self, text: str, **result: Any) -> None:
        self.show(result, [text])


def _of_type(**how: Any) -> Argument:
    return arg("task_type", _("the name of the task type"), metavar="TASK_TYPE", **how)


def _readings() -> Iterator[Word]:
    these = _("only these queues, each with all that is known of it; 0..63 are 64 of them")
    some = arg("queue", these, nargs="*", default=[], metavar="QUEUE")
    shows = _("how servers and queues stand; the default")
    yield reading("show", shows, _look, _of_type(nargs="?"), some, limited(20))

    left = _('without this server: "web-3" (all of that name) or "web-3 #17"; may be repeated')
    one_more = _("with one more server, such as web-4, or web-4:2 for weight 2; may be repeated")
    joined = many("--with", one_more, "NAME[:WEIGHT]", dest="joining")
    theirs = many("--labels", _("a label of the servers of --with; may be repeated"), "KEY=VALUE")
    who = [many("--without", left, "SERVER"), joined, theirs]
    plans = _("what would move if servers left or joined; changes nothing")
    yield reading("plan", plans, _plan, _of_type(), *who, limited(100))


def _look(options: Options) -> Look:
    name = options["task_type"]
    found = task_types() if name is None else [task_type(name)]
    wrong = sorted(of_queues(found), key=lambda alarm: (not alarm.is_severe, alarm.pool))
    data, parts = _all(found) if name is None else _one(found[0], queue_ids(options["queue"]), options["limit"])
    return {"task_types": found, **data, "alarms": wrong}, [*parts, *problems_as_text(wrong)]


def _all(found: Sequence[TaskTypeStatus]) -> Look:
    add = "`manage.py resourcepool_queues add <task type> <queue> .. --new`"
    return {}, [table(found, report.TASK_TYPES) if found else _("No task type yet; %s makes one.") % add]


def _one(one: TaskTypeStatus, ids: Sequence[str], limit: int) -> Look:
    if ids:
        queues = queues_named(one, ids)
        moved = moves(one.name, of=[queue.pk for queue in queues], limit=limit)
        parts = [part for queue in queues[:limit] for part in ("", *report.queue_as_text(queue, one))]
        parts += more(limit, len(queues))
    else:
        queues, moved = queues_of(one, limit=max(ON_THE_MAP, limit)), moves(one.name, limit=LATEST)
        parts = ["", *report.servers_as_text(one.servers, limit)]
        parts += report.map_as_text(queues, one.servers, one.queues, limit)
    data = {"queues": queues, "moves": moved[:limit]}
    return data, [*report.settings_as_text(one), *parts, "", report.moves_as_text(moved, limit)]


def _plan(options: Options) -> Look:
    labels = labels_given(options["labels"], "--labels")
    joining = [_member(number, word, labels) for number, word in enumerate(options["joining"], 1)]
    return _foreseen(options, without=options["without"], joining=joining)


def _foreseen(options: Options, **what: Any) -> Look:
    found, limit = forecast(options["task_type"], **what), options["limit"]
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
    return Member(-number, name, checked.whole("--with", int(weight), least=1, most=MOST_WEIGHT), labels)


def _option(setting: str) -> str:
    return SPANS[setting][0] if setting in SPANS else f"--{setting}" if setting == "strategy" else setting
