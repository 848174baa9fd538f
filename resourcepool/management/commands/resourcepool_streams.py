"""``manage.py resourcepool_streams``: how the streams stand, why nothing runs, and what operators change."""

import argparse
import shlex
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.db import connections
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.database.retry import retrying
from resourcepool.management import watching
from resourcepool.management.layout import plain
from resourcepool.management.on_tasks import TasksCommand
from resourcepool.management.streams_report import streams_as_text
from resourcepool.operations.operation import by_name
from resourcepool.operations.work import DISCARD, RETRY
from resourcepool.status.streams import MOST_STREAMS, STANDINGS, page_of_streams, streams
from resourcepool.taskqueue.models import Stream, Task

SETTINGS: dict[str, type] = {
    **dict.fromkeys(("retries", "most_deaths", "lanes"), int),
    **dict.fromkeys(("retry_delay", "term_ttl", "lock_delay", "done_kept"), float),
    "on_failure": str,
}

PAGING = ("standing", "containing", "after", "limit")


class Command(TasksCommand):
    place, work = Stream, Task
    states = [one for one in Task.State.values if one not in (Task.State.RUNNING, Task.State.DONE)]
    on_work = by_name(RETRY, DISCARD)
    about = gettext_lazy(
        "Shows each stream: who leads, how many tasks are left, and why nothing runs; adds, pauses and resumes streams,"
        " retries and discards tasks."
    )
    example = (
        "manage.py resourcepool_streams\n"
        "manage.py resourcepool_streams add oracle --retries 3 --on-failure dead-letter\n"
        "manage.py resourcepool_streams pause oracle\n"
        "manage.py resourcepool_streams retry oracle req-42\n"
        "manage.py resourcepool_streams retry oracle --state dead\n"
        "manage.py resourcepool_streams discard oracle req-42 --reason 'no such disk'"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """See ``BaseCommand``."""
        watching.add_watch(parser)
        about = _("one of these; each has a --help of its own")
        acts = parser.add_subparsers(dest="do", metavar="WHAT", title=_("what to do"), help=about)
        show = acts.add_parser("show", help=_("shows all streams, or one; the default"))
        show.add_argument("stream", nargs="?", help=_("only this one"))
        show.add_argument("--standing", choices=STANDINGS, help=_("only those that stand so"))
        show.add_argument(
            "--containing", default="", metavar="TEXT", help=_("only those with this in their name")
        )
        show.add_argument("--after", default="", metavar="NAME", help=_("the next page: those after this name"))
        about = _("so many on a page; default: %d") % MOST_STREAMS
        show.add_argument("--limit", type=int, default=MOST_STREAMS, metavar="N", help=about)
        watching.add_watch(show, default=argparse.SUPPRESS)
        add = acts.add_parser("add", help=_("adds a stream"))
        add.add_argument("stream", help=_("the name of a stream"))
        for name in SETTINGS:
            add.add_argument(f"--{name.replace('_', '-')}", **_asked(name))
        self.add_operations(acts)

    def run(self, **options: Any) -> None:
        """See ``OperatorCommand``."""
        does = options["do"] or "show"
        if does != "show" and (options["json"] or options["watch"] is not None):
            raise CommandError(_("--watch and --json are for show; nothing was changed"))
        if does == "show":
            watching.watch(self, lambda: _look(options), options)
        elif does == "add":
            self.stdout.write(_("added %s") % _added(options["stream"], self.using, options))
        else:
            self.do_operation(does, options)


def _asked(name: str) -> dict[str, Any]:
    """Return how ``add`` asks for this setting."""
    field: Any = Stream._meta.get_field(name)
    is_choice, is_whole = name == "on_failure", SETTINGS[name] is int
    metavar = None if is_choice else "N" if is_whole else "SECONDS"
    default = _("default: %s") % (field.default if is_choice else f"{field.default:g}")
    about = f"{field.help_text} {default}"
    choices = field.choices if is_choice else []
    about = "; ".join([about, *(str(label) for _value, label in choices)])
    return {
        "type": SETTINGS[name],
        "choices": [value for value, _label in choices] or None,
        "metavar": metavar,
        "help": about.replace("%", "%%"),
    }


def _look(options: dict[str, Any]) -> watching.Look:
    if name := options.get("stream"):
        found = streams(name)
        return {"streams": found}, streams_as_text(found)
    chosen = {option: options[option] for option in PAGING if options.get(option) not in (None, "")}
    page = page_of_streams(**chosen)
    if chosen.keys() - {"limit"} and not page.streams:
        return {"streams": [], "after": ""}, [_("No stream is so.")]
    told = ["", _("There are more: --after %s") % shlex.quote(page.after)] if page.after else []
    return {"streams": page.streams, "after": page.after}, [*streams_as_text(page.streams), *told]


def _added(name: str, using: str, options: dict[str, Any]) -> str:
    chosen = {setting: options[setting] for setting in SETTINGS if options[setting] is not None}
    row = Stream(name=name, **chosen)
    try:
        row.full_clean(validate_unique=False)
    except ValidationError as error:
        said = "; ".join(f"{field}: {' '.join(texts)}" for field, texts in error.message_dict.items())
        raise CommandError(said) from error
    if retrying(connections[using], Stream.objects.using(using).filter(pk=name).exists):
        raise CommandError(_("there is a stream %s already; nothing was changed") % plain(name))
    row.save(using=using, force_insert=True)
    return str(row)
