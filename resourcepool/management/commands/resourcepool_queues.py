"""``manage.py resourcepool_queues``: which server has which queue, what would move, and what operators change."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from django.core.management.base import CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from resourcepool.exceptions import BadOption
from resourcepool.management import queues_arguments as told
from resourcepool.management import queues_report as report
from resourcepool.management import watching
from resourcepool.management.base import OperatorCommand, actor
from resourcepool.management.layout import more, plain
from resourcepool.management.status_report import problems_as_text
from resourcepool.queues import changing
from resourcepool.queues.ids import queue_ids
from resourcepool.status.queues.alarms import drains_in_vain, of_queues
from resourcepool.status.queues.forecast import forecast
from resourcepool.status.queues.moves import moves, queues_named, queues_of
from resourcepool.status.queues.pins import no_such_server
from resourcepool.status.queues.task_types import TaskTypeStatus, task_type, task_types
from resourcepool.status.reading import as_data

ON_THE_MAP = 2_000  # queues
LATEST = 1_000  # moves


class Command(OperatorCommand):
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

    def add_arguments(self, parser: CommandParser) -> None:
        told.add_sub_commands(parser)

    def run(self, **options: Any) -> None:
        """See ``OperatorCommand``."""
        self.DOES[options["do"] or "show"](self, options)

    def _show(self, options: dict[str, Any]) -> None:
        watching.watch(self, lambda: _look(options), options)

    def _plan(self, options: dict[str, Any]) -> None:
        joining = told.joining(options["joining"], told.labels(options["labels"], "--labels"))
        self._foresee(options, without=options["without"], joining=joining)

    def _foresee(self, options: dict[str, Any], **what: Any) -> None:
        found = forecast(options["task_type"], **what)
        first = replace(found, changes=found.changes[: options["limit"]])
        data = {**as_data(first), "changes_total": len(found.changes)}
        self.show(data, report.forecast_as_text(found, options["limit"]))

    def _add(self, options: dict[str, Any]) -> None:
        name, ids, settings = options["task_type"], queue_ids(options["queue"]), told.settings(options)
        of_each = {"parameter": options["parameter"], "labels": told.labels(options["label"])}
        if options["new"]:
            _create(name, ids, **of_each, **settings)
        elif settings:
            option = next(told.SPANS.get(one, "--strategy") for one in settings)
            raise BadOption(
                option, options[next(iter(settings))], because=_("only with --new; later the admin changes it")
            )
        else:
            changing.add_queues(name, ids, by=actor(), **of_each)
        self._say_how_many(ngettext("Added %s queue.", "Added %s queues.", len(ids)), len(ids))

    def _change(self, options: dict[str, Any]) -> None:
        ids, needed = queue_ids(options["queue"]), told.labels(options["label"] or [])
        if options["no_label"] and needed:
            raise BadOption("--no-label", options["label"], because=_("without --label"))
        labels = needed if needed or options["no_label"] else None
        about = {"parameter": options["parameter"], "labels": labels}
        if about == {"parameter": None, "labels": None}:
            raise BadOption(
                "change", options["task_type"], because=_("with --parameter, --label or --no-label")
            )
        changing.change_queues(options["task_type"], ids, by=actor(), **about)
        text = ngettext("Changed %s queue.", "Changed %s queues.", len(ids))
        self._say_how_many(text, len(ids))

    def _remove(self, options: dict[str, Any]) -> None:
        ids = queue_ids(options["queue"])
        if options["dry_run"]:
            self._foresee(options, removing=ids)
            return
        count = changing.remove_queues(options["task_type"], ids, by=actor())
        text = ngettext(
            "Removes %s queue, as soon as its server has finished its work on it.",
            "Removes %s queues, each as soon as its server has finished its work on it.",
            count,
        )
        self._say_how_many(text, count)

    def _pin(self, options: dict[str, Any]) -> None:
        to, ids = options.get("to", ""), queue_ids(options["queue"])
        if options["do"] == "pin" and not to:
            raise BadOption("--to", to, _("a server's name; `unpin` ends a pin"))
        was_pinned = to or any(queue.pin for queue in queues_named(task_type(options["task_type"]), ids))
        count = changing.pin(options["task_type"], ids, to, by=actor())
        if not was_pinned:
            self._say(_("None of them was pinned."), changed=0)
            return
        pinned = ngettext("Pinned %s queue.", "Pinned %s queues.", count)
        unpinned = ngettext("Unpinned %s queue.", "Unpinned %s queues.", count)
        self._say_how_many(pinned if to else unpinned, count, no_such_server(options["task_type"], to))

    def _drain(self, options: dict[str, Any]) -> None:
        if options.get("dry_run"):
            self._foresee(options, draining=options["server"])
            return
        drained = {str(one) for one in task_type(options["task_type"]).servers if one.is_draining}
        change = {"drain": changing.drain, "undrain": changing.undrain}[options["do"]]
        servers = change(options["task_type"], *options["server"], by=actor())
        text = {"drain": _("Drains: %s."), "undrain": _("Gets queues again: %s.")}[options["do"]]
        if options["do"] == "undrain" and not drained & set(servers):
            text = _("None of them was draining: %s.")
        stay = drains_in_vain(task_type(options["task_type"])) if options["do"] == "drain" else ()
        but = [alarm.text for alarm in stay]
        lines = [text % ", ".join(plain(one) for one in servers), *but]
        self._say("\n".join(lines), servers=servers, **({"but": but} if but else {}))

    def _pause(self, options: dict[str, Any]) -> None:
        changing.pause(options["task_type"], by=actor())
        text = _(
            "Paused: no more work begins on the queues of %s; each server hears of it with its next heartbeat."
        )
        self._say(text % plain(options["task_type"]), paused=True)

    def _resume(self, options: dict[str, Any]) -> None:
        was_paused = task_type(options["task_type"]).is_paused
        changing.resume(options["task_type"], by=actor())
        text = _("Resumed: work on the queues of %s goes on with each server's next heartbeat.")
        if not was_paused:
            text = _("%s was not paused.")
        self._say(text % plain(options["task_type"]), paused=False)

    def _say_how_many(self, text: str, count: int, but: str = "") -> None:
        self._say(" ".join([text % f"{count:,}", *([but] if but else [])]), changed=count)

    def _say(self, text: str, **result: Any) -> None:
        self.show(result, [text])

    DOES: ClassVar[dict[str, Callable[["Command", dict[str, Any]], None]]] = {
        "show": _show,
        "plan": _plan,
        "add": _add,
        "change": _change,
        "remove": _remove,
        "pin": _pin,
        "unpin": _pin,
        "drain": _drain,
        "undrain": _drain,
        "pause": _pause,
        "resume": _resume,
    }


def _look(options: dict[str, Any]) -> watching.Look:
    name = options["task_type"]
    found = task_types() if name is None else [task_type(name)]
    wrong = sorted(of_queues(found), key=lambda alarm: (not alarm.is_severe, alarm.pool))
    data, parts = _all(found) if name is None else _one(found[0], queue_ids(options["queue"]), options["limit"])
    return {"task_types": found, **data, "alarms": wrong}, [*parts, *problems_as_text(wrong)]


def _all(found: Sequence[TaskTypeStatus]) -> watching.Look:
    add = "`manage.py resourcepool_queues add <task type> <queue> .. --new`"
    return {}, [report.task_types_as_text(found) if found else _("No task type yet; %s makes one.") % add]


def _one(one: TaskTypeStatus, ids: Sequence[str], limit: int) -> watching.Look:
    if ids:
        queues = queues_named(one, ids)
        moved = moves(one.name, of=[queue.pk for queue in queues], limit=limit)
        parts = [part for queue in queues[:limit] for part in ("", *report.queue_as_text(queue, one))]
        parts += more(min(limit, len(queues)), len(queues))
    else:
        queues, moved = queues_of(one, limit=max(ON_THE_MAP, limit)), moves(one.name, limit=LATEST)
        parts = ["", *report.servers_as_text(one.servers, limit)]
        parts += report.map_as_text(queues, one.servers, one.queues, limit)
    data = {"queues": queues, "moves": moved[:limit]}
    return data, [*report.settings_as_text(one), *parts, "", report.moves_as_text(moved, limit)]


def _create(name: str, ids: Sequence[str], **about: Any) -> None:
    try:
        changing.create(name, ids, by=actor(), **about)
    except BadOption as error:
        raise error.of(told.SPANS.get(error.name, error.name)) from None
