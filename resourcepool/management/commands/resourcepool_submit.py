"""``manage.py resourcepool_submit oracle CreateTableSpace '{"initSize": 8000}' --key req-42``: adds a task."""

from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from resourcepool.exceptions import BadOption
from resourcepool.management.arguments import Argument, arg, parse_json
from resourcepool.management.base import OperatorCommand
from resourcepool.taskqueue import submit
from resourcepool.translation import gettext as _, gettext_lazy

EXAMPLES = {True: "2026-12-01T02:00:00+00:00", False: "2026-12-01T02:00:00"}


class Command(OperatorCommand):
    about = gettext_lazy(
        "Adds a task to a stream and returns at once. With a key the command is safe to repeat: it adds the task only"
        " once."
    )
    example = (
        "manage.py resourcepool_submit oracle CreateTableSpace '{\"initSize\": 8000}' --key req-42\n"
        "manage.py resourcepool_submit oracle Reindex --lane db-7 --task-time 2026-12-01T02:00:00+00:00"
    )

    def arguments(self) -> list[Argument]:
        about = _("place in the order: a time such as %s (default: now)") % EXAMPLES[settings.USE_TZ]
        return [
            arg("stream", _("the name of a stream")),
            arg("type", _("type of the task; consumers need a handler for it")),
            arg("params", _("a JSON object (default: {})"), nargs="?", default="{}"),
            arg("--key", _("unique in the stream (default: random)")),
            arg("--lane", _("tasks of one lane run in order"), default=""),
            arg("--task-time", about, metavar="TIME"),
        ]

    def run(self, **options: Any) -> None:
        result = submit(
            options["stream"],
            options["type"],
            parse_json("params", options["params"], _("a JSON object (%s)")),
            key=options["key"],
            lane=options["lane"],
            task_time=_moment(options["task_time"]),
        )
        message = (
            _("submitted %(key)s") if result.is_new else _("%(key)s was already submitted; nothing was changed")
        )
        self.stdout.write(message % {"key": result.key})


def _moment(text: str | None) -> Any:
    if text is None:
        return None
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None or settings.USE_TZ is timezone.is_naive(moment):
        raise BadOption("--task-time", text, _("a time such as %s") % EXAMPLES[settings.USE_TZ])
    return moment
