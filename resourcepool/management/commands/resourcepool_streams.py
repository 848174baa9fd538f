"""``manage.py resourcepool_streams``: how the streams stand, why nothing runs, and what operators change."""

from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from django.db import connections
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.database.retry import retrying
from resourcepool.events import shown
from resourcepool.management.layout import plain
from resourcepool.management.on_tasks import TasksCommand
from resourcepool.operations.operation import by_name
from resourcepool.operations.work import DISCARD, RETRY
from resourcepool.options import span
from resourcepool.status.streams import STREAMS
from resourcepool.taskqueue.models import Stream, Task

SETTINGS: dict[str, type] = {
    **dict.fromkeys(("retries", "most_deaths", "lanes"), int),
    **dict.fromkeys(("retry_delay", "term_ttl", "lock_delay", "done_kept"), float),
    "on_failure": str,
}


class Command(TasksCommand):
    place, work = Stream, Task
    places = STREAMS
    states = [one for one in Task.State.values if one not in (Task.State.RUNNING, Task.State.DONE)]
    on_work = by_name(RETRY, DISCARD)
    lists = "tasks"
    helps: ClassVar = {
        "show": gettext_lazy("shows all streams, or one; the default"),
        "tasks": gettext_lazy("lists the tasks of a stream, by key"),
    }
    about = gettext_lazy(
        "Shows each stream: who leads, how many tasks are left, and why nothing runs; adds, pauses and resumes streams,"
        " retries and discards tasks."
    )
    example = (
        "manage.py resourcepool_streams\n"
        "manage.py resourcepool_streams add oracle --retries 3 --on-failure dead-letter\n"
        "manage.py resourcepool_streams tasks oracle --state blocked\n"
        "manage.py resourcepool_streams pause oracle\n"
        "manage.py resourcepool_streams retry oracle req-42\n"
        "manage.py resourcepool_streams retry oracle --state dead\n"
        "manage.py resourcepool_streams discard oracle req-42 --reason 'no such disk'"
    )

    def add_acts(self, acts: Any) -> None:
        """See ``TasksCommand``."""
        add = acts.add_parser("add", help=_("adds a stream"))
        add.add_argument("stream", help=_("the name of a stream"))
        for name in SETTINGS:
            add.add_argument(f"--{name.replace('_', '-')}", **_asked(name))

    def do(self, does: str, options: dict[str, Any]) -> None:
        """See ``TasksCommand``."""
        if does == "add":
            self.stdout.write(_("added %s") % _added(options["stream"], self.using, options))
        else:
            self.do_operation(does, options)


def _asked(name: str) -> dict[str, Any]:
    """Return how ``add`` asks for this setting."""
    field: Any = Stream._meta.get_field(name)
    is_choice, is_span = name == "on_failure", SETTINGS[name] is float
    metavar = None if is_choice else "SECONDS" if is_span else "N"
    default = _("default: %s") % (shown(span(field.default)) if is_span else field.default)
    about = f"{field.help_text} {default}"
    choices = field.choices if is_choice else []
    about = "; ".join([about, *(str(label) for _value, label in choices)])
    return {
        "type": SETTINGS[name],
        "choices": [value for value, _label in choices] or None,
        "metavar": metavar,
        "help": about.replace("%", "%%"),
    }


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
