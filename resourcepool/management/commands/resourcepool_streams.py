"""``manage.py resourcepool_streams``: the status of streams, why nothing runs, and operator actions."""

from collections.abc import Iterator
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from django.db import connections

from resourcepool.db.retry import retrying
from resourcepool.events import localized
from resourcepool.management.arguments import Argument, arg
from resourcepool.management.layout import one_line
from resourcepool.management.subcommands import Options, Subcommand, action
from resourcepool.management.work_commands import WorkCommand
from resourcepool.operations.taskqueue import DISCARD, RETRY
from resourcepool.options import duration_text
from resourcepool.status.work.streams import SYSTEM
from resourcepool.taskqueue.models import Stream, Task
from resourcepool.translation import gettext as _, gettext_lazy

SETTINGS: dict[str, type] = {
    **dict.fromkeys(("retries", "max_crashes", "lanes"), int),
    **dict.fromkeys(("retry_delay", "term_ttl", "lock_delay", "done_kept"), float),
    "on_failure": str,
}


class Command(WorkCommand):
    system, work = SYSTEM, Task
    work_operations = (RETRY, DISCARD)
    show_help = gettext_lazy("shows all streams, or one; the default")
    list_word = ("tasks", gettext_lazy("lists the tasks of a stream, by key"))
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

    def subcommands(self) -> Iterator[Subcommand]:
        yield from super().subcommands()
        name = arg("stream", _("the name of a stream"))
        yield action("add", _("adds a stream"), self.add, name, *map(_setting, SETTINGS))

    def add(self, options: Options) -> None:
        given = {setting: options[setting] for setting in SETTINGS if options[setting] is not None}
        row, rows = Stream(name=options["stream"], **given), self.rows
        try:
            row.full_clean(validate_unique=False)
        except ValidationError as error:
            message = "; ".join(f"{field}: {' '.join(texts)}" for field, texts in error.message_dict.items())
            raise CommandError(message) from error
        if retrying(connections[rows.db], rows.filter(pk=row.pk).exists):
            raise CommandError(_("stream %s already exists; nothing was changed") % one_line(row.pk))
        row.save(using=rows.db, force_insert=True)
        self.stdout.write(_("added %s") % row)


def _setting(name: str) -> Argument:
    field: Any = Stream._meta.get_field(name)
    is_span, choices = SETTINGS[name] is float, field.choices or ()
    default = _("default: %s") % (localized(duration_text(field.default)) if is_span else field.default)
    about = "; ".join([f"{field.help_text} {default}", *(str(label) for _value, label in choices)])
    return arg(
        f"--{name.replace('_', '-')}",
        about.replace("%", "%%"),
        type=SETTINGS[name],
        choices=[value for value, _label in choices] or None,
        metavar=None if choices else "SECONDS" if is_span else "N",
    )
