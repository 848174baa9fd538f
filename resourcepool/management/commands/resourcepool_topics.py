"""``manage.py resourcepool_topics``: how the timers stand, why nothing fires, and what operators change."""

import argparse
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import connections, router
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.database.retry import retrying
from resourcepool.exceptions import BadOption
from resourcepool.management import watching
from resourcepool.management.base import OperatorCommand, actor
from resourcepool.management.timers_report import topics_as_text
from resourcepool.operations.operation import Operation, by_name
from resourcepool.operations.timers import CANCEL, FIRE
from resourcepool.operations.work import DISCARD, PAUSE, RESUME, RETRY
from resourcepool.status.timers import names_of_topics, topics
from resourcepool.taskqueue.timers.models import Timer, Topic

MOST_NAMES = 10_000
NAMED = 5  # names in an error
STATES = [state for state in Timer.State.values if state not in (Timer.State.RUNNING, Timer.State.DONE)]
OF_TOPICS, OF_TIMERS = by_name(PAUSE, RESUME), by_name(FIRE, CANCEL, RETRY, DISCARD)


class Command(OperatorCommand):
    about = gettext_lazy(
        "Shows each topic of timers: how many are pending, due and late, which nodes are there, and why nothing fires;"
        " pauses and resumes topics; fires, cancels, retries and discards timers."
    )
    example = (
        "manage.py resourcepool_topics\n"
        "manage.py resourcepool_topics pause order.timeout\n"
        "manage.py resourcepool_topics fire order.timeout order-42-unpaid\n"
        "manage.py resourcepool_topics retry order.timeout --state dead\n"
        "manage.py resourcepool_topics discard order.timeout order-42-unpaid --reason 'paid by hand'"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """See ``BaseCommand``."""
        watching.add_watch(parser)
        about = _("one of these; each has a --help of its own")
        acts = parser.add_subparsers(dest="do", metavar="WHAT", title=_("what to do"), help=about)
        show = acts.add_parser("show", help=_("shows all topics, or one; the default"))
        show.add_argument("topic", nargs="?", help=_("only this one"))
        watching.add_watch(show, default=argparse.SUPPRESS)
        for one in (*OF_TOPICS.values(), *OF_TIMERS.values()):
            act = acts.add_parser(one.name, help=str(one.title))
            act.add_argument("topic", help=_("the name of a topic"))
            if one.name in OF_TOPICS:
                continue
            act.add_argument("name", nargs="*", help=_("names of timers"))
            act.add_argument("--state", choices=STATES, help=_("all timers in this state, up to 10,000"))
            act.add_argument("--yes", action="store_true", help=_("do not ask"))
            for line in one.fields:
                act.add_argument(f"--{line.name}", required=line.is_needed, help=str(line.help))

    def run(self, **options: Any) -> None:
        """See ``OperatorCommand``."""
        does = options["do"] or "show"
        if does != "show" and (options["json"] or options["watch"] is not None):
            raise CommandError(_("--watch and --json are for show; nothing was changed"))
        if does == "show":
            watching.watch(self, lambda: _look(options.get("topic")), options)
            return
        topic = _known(options["topic"])
        if operation := OF_TOPICS.get(does):
            self._operate(operation, Topic.objects.using(_using()).filter(pk=topic), 1, {})
            return
        operation = OF_TIMERS[does]
        entered = {line.name: line.checked(options[line.name]) for line in operation.fields}
        timers = Timer.objects.using(_using()).filter(topic_id=topic)
        names = (
            set(options["name"]) if options["state"] is None else self._of_a_state(timers, operation, options)
        )
        if not 0 < len(names) <= MOST_NAMES:
            raise BadOption("name", len(names), _("1 to %s names, or --state") % f"{MOST_NAMES:,}")
        rows = timers.filter(name__in=names)
        found = set(retrying(connections[_using()], lambda: list(rows.values_list("name", flat=True))))
        self._operate(operation, rows, len(found), entered, _unknown(topic, sorted(names - found)))

    def _of_a_state(self, timers: Any, operation: Operation, options: dict[str, Any]) -> set[str]:
        """Return the names of the timers in a state, the first ones first, if the operator confirms it."""
        if options["name"]:
            raise BadOption("name", options["name"], _("names or --state, not both"))
        rows = timers.filter(state=options["state"]).order_by("finished_at", "busy_before")
        found = rows.values_list("name", flat=True)[:MOST_NAMES]
        names = set(retrying(connections[_using()], lambda: list(found)))
        if not names:
            raise CommandError(_("no timer of %(topic)s is in that state") % {"topic": options["topic"]})
        told = {"act": operation.button, "count": f"{len(names):,}"}
        self.ask(_("%(act)s all %(count)s?") % told, yes=options["yes"])
        return names

    def _operate(
        self, operation: Operation, rows: Any, asked: int, entered: dict[str, Any], told: str = ""
    ) -> None:
        done = retrying(connections[_using()], lambda: operation.do(rows, actor=actor(), **entered))
        if done:
            self.stdout.write(operation.done % {"count": done})
        left = operation.otherwise % {"count": asked - done} if asked > done else ""
        if left or told:
            raise CommandError(" ".join(filter(None, (left, told))))


def _look(name: str | None) -> watching.Look:
    found = topics(*([name] if name else []))
    return {"topics": found}, topics_as_text(found)


def _known(name: str) -> str:
    rows = Topic.objects.using(_using()).filter(pk=name)
    if not retrying(connections[_using()], rows.exists):
        raise BadOption("topic", name, names_of_topics(_using()))
    return name


def _unknown(topic: str, names: list[str]) -> str:
    if not names:
        return ""
    some = ", ".join(names[:NAMED]) + (" .." if len(names) > NAMED else "")
    return _("%(topic)s has no timer with this name: %(names)s") % {"topic": topic, "names": some}


def _using() -> str:
    return router.db_for_write(Topic)
