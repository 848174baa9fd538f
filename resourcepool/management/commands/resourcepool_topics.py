"""``manage.py resourcepool_topics``: how the timers stand, why nothing fires, and what operators change."""

import argparse
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.management import watching
from resourcepool.management.on_tasks import TasksCommand
from resourcepool.management.timers_report import topics_as_text
from resourcepool.operations.operation import by_name
from resourcepool.operations.timers import CANCEL, FIRE
from resourcepool.operations.work import DISCARD, RETRY
from resourcepool.status.timers import topics
from resourcepool.taskqueue.timers.models import Timer, Topic


class Command(TasksCommand):
    place, work = Topic, Timer
    states = [one for one in Timer.State.values if one not in (Timer.State.RUNNING, Timer.State.DONE)]
    on_work = by_name(FIRE, CANCEL, RETRY, DISCARD)
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
        self.add_operations(acts)

    def run(self, **options: Any) -> None:
        """See ``OperatorCommand``."""
        does = options["do"] or "show"
        if does != "show" and (options["json"] or options["watch"] is not None):
            raise CommandError(_("--watch and --json are for show; nothing was changed"))
        if does == "show":
            watching.watch(self, lambda: _look(options.get("topic")), options)
        else:
            self.do_operation(does, options)


def _look(name: str | None) -> watching.Look:
    found = topics(*([name] if name else []))
    return {"topics": found}, topics_as_text(found)
