"""``manage.py resourcepool_why``: who has it, since when, and why is it, or somebody, not served?"""

from collections.abc import Callable, Sequence
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.exceptions import BadOption
from resourcepool.management import arguments
from resourcepool.management import why_report as report
from resourcepool.management.base import OperatorCommand
from resourcepool.management.dispenser_report import dispensers_as_text
from resourcepool.management.layout import plain
from resourcepool.management.streams_report import streams_as_text
from resourcepool.management.timers_report import topics_as_text
from resourcepool.status import why
from resourcepool.status.dispensers import dispenser_of
from resourcepool.status.search import Matches, find, without_password
from resourcepool.status.streams import stream_of
from resourcepool.status.timers import topic_of

OF_TASKS: dict[str, tuple[Callable[[str], Any], Callable[[Any], list[str]]]] = {
    "stream": (stream_of, streams_as_text),
    "dispenser": (dispenser_of, dispensers_as_text),
    "topic": (topic_of, topics_as_text),
}


class Command(OperatorCommand):
    about = gettext_lazy(
        "Says of a resource who has it, since when, for how long still, how its last leases ended, and why it is not"
        " handed out; of a holder what it has, and why it waits: its place in line, what it wants, who is in front."
        " A resource is known by id, name or address, a holder by name, host or host/pid; part of it will do. Of a"
        " stream of tasks, a dispenser or a topic of timers, known by its whole name, it says why nothing runs or is"
        " handed out."
    )
    example = (
        "manage.py resourcepool_why 17\n"
        "manage.py resourcepool_why proxy 17\n"
        "manage.py resourcepool_why 198.51.100.7:3128\n"
        "manage.py resourcepool_why crawler3/4711 --json\n"
        "manage.py resourcepool_why oracle\n"
        "manage.py resourcepool_why order.timeout"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("pool", nargs="?", help=_("look only there (app.Model, or Model)"))
        parser.add_argument("what", help=_("a resource, a holder, a stream, a dispenser or a topic"))
        parser.add_argument("--pool", dest="in_pool", metavar="POOL", help=_("the same as the first word"))
        parser.add_argument("--json", action="store_true", help=_("print one JSON object"))
        arguments.add_limit(parser, 10)

    def run(self, **options: Any) -> None:
        """See ``OperatorCommand``."""
        if not options["what"].strip():
            raise BadOption(
                "what", options["what"], _("a resource, a holder, a stream, a dispenser or a topic")
            )
        label = options["pool"] or options["in_pool"]
        models = arguments.pools(label)
        found = _found(options["what"], models, options["limit"], by_key=label is not None)
        said = plain(without_password(options["what"]), 120)
        if not found.resources and not found.holders:
            if label is None and self._is_of_tasks(options["what"].strip()):
                return
            text = _("no resource, running lease, place in line, stream, dispenser or topic is called %r")
            raise CommandError(text % said)
        if len(found.resources) + len(found.holders) > 1:
            self.show(found, report.candidates_as_text(found))
            told = _("%(said)r may be any of these; say which, for example: %(command)s")
            command = f"manage.py resourcepool_why {report.first_as_typed(found)}"
            raise CommandError(told % {"said": said, "command": command})
        if found.resources:
            resource = why.resource(found.resources[0])
            self.show(resource, report.resource_as_text(resource))
        else:
            holder = why.holder(found.holders[0], models, options["limit"])
            self.show(holder, report.holder_as_text(holder))

    def _is_of_tasks(self, name: str) -> bool:
        """Show the stream, the dispenser and the topic of this name; tell whether there is one of these."""
        found = {kind: (one, as_text) for kind, (find, as_text) in OF_TASKS.items() if (one := find(name))}
        if not found:
            return False
        lines = [line for one, as_text in found.values() for line in ("", *as_text([one]))]
        ones = {kind: one for kind, (one, _as_text) in found.items()}
        self.show(ones if len(ones) > 1 else next(iter(ones.values())), lines[1:])
        return True


def _found(what: str, models: Sequence[Any], limit: int, *, by_key: bool) -> Matches:
    """Return who may be meant; ``by_key``: a primary key means that resource, whatever else is called so."""
    found = find(what, models, limit)
    of_this_key = [row for row in found.resources if str(row.pk) == what.strip()] if by_key else []
    return Matches(of_this_key) if of_this_key else found
