"""``manage.py resourcepool_why``: who has it, since when, and why is it, or somebody, not served?"""

from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.exceptions import BadOption
from resourcepool.management import why_report as report
from resourcepool.management.arguments import Argument, arg, flag, limited, pools
from resourcepool.management.base import OperatorCommand
from resourcepool.management.layout import plain
from resourcepool.management.locks_report import OF_HOLDER, in_full
from resourcepool.management.tables import table
from resourcepool.management.work_report import places_as_text
from resourcepool.status import why
from resourcepool.status.channels import CHANNELS
from resourcepool.status.dispensers import DISPENSERS
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.names import lock_named
from resourcepool.status.locks.of_holder import held_by, processes
from resourcepool.status.search import Matches, find, without_password
from resourcepool.status.streams import STREAMS
from resourcepool.status.timers import TOPICS

PLACES = {places.word: places for places in (STREAMS, DISPENSERS, TOPICS, CHANNELS)}


class Command(OperatorCommand):
    about = gettext_lazy(
        "Says of a resource who has it, since when, for how long still, how its last leases ended, and why it is not"
        " handed out; of a holder what it has, and why it waits: its place in line, what it wants, who is in front."
        " A resource is known by id, name or address, a holder by name, host or host/pid; part of it will do. Of a"
        " stream of tasks, a dispenser, a topic of timers or a channel, known by its whole name, it says why nothing"
        " runs, is handed out or is read; of a lock, a semaphore, a read-write lock or a condition who has it and who"
        " waits."
    )
    example = (
        "manage.py resourcepool_why 17\n"
        "manage.py resourcepool_why proxy 17\n"
        "manage.py resourcepool_why 198.51.100.7:3128\n"
        "manage.py resourcepool_why crawler3/4711 --json\n"
        "manage.py resourcepool_why oracle\n"
        "manage.py resourcepool_why order.timeout\n"
        "manage.py resourcepool_why lock nightly-report"
    )

    what = gettext_lazy("a resource, a holder, a stream, a dispenser, a topic, a channel or a lock")

    def arguments(self) -> list[Argument]:
        only_there = _(
            "look only there (app.Model, or Model; or lock, semaphore, rwlock, condition, barrier, stream,"
            " dispenser, topic, channel)"
        )
        return [
            arg("pool", only_there, nargs="?"),
            arg("what", self.what),
            arg("--pool", _("the same as the first word"), dest="in_pool", metavar="POOL"),
            flag("--json", _("print one JSON object")),
            limited(10),
        ]

    def run(self, **options: Any) -> None:
        what, label = options["what"], options["pool"] or options["in_pool"]
        if not (name := what.strip()):
            raise BadOption("what", what, str(self.what))
        if label in [*LockKind, *PLACES]:
            if not (self._is_place(name, label) if label in PLACES else self._is_lock(name, label)):
                text = _("no %(kind)s is called %(name)s")
                raise CommandError(text % {"kind": label, "name": plain(name)})
            return
        models = pools(label)
        found = _found(what, models, options["limit"], by_key=label is not None)
        said = plain(without_password(what), 120)
        if not found.resources and not found.holders:
            if label is None and (self._is_place(name) or self._is_lock(name) or self._holds_locks(name)):
                return
            text = _(
                "no resource, running lease, place in line, stream, dispenser, topic, channel or lock is called %r"
            )
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

    def _is_lock(self, name: str, kind: str = "") -> bool:
        """Show the lock, semaphore, read-write lock and condition of this name; tell whether there is one."""
        if found := lock_named(name, kind):
            self.show(*in_full(found))
        return bool(found)

    def _holds_locks(self, holder: str) -> bool:
        """Show what the processes hold that may be meant by this; tell whether they hold anything."""
        if found := held_by(processes(holder)):
            self.show({"holds": found}, [table(found, OF_HOLDER)])
        return bool(found)

    def _is_place(self, name: str, kind: str = "") -> bool:
        """Show the stream, dispenser, topic and channel of this name; tell whether there is one of these."""
        asked = [PLACES[kind]] if kind else PLACES.values()
        found = {places: one for places in asked if (one := places.called(name))}
        if not found:
            return False
        lines = [line for places, one in found.items() for line in ("", *places_as_text(places.model, [one]))]
        ones = {places.word: one for places, one in found.items()}
        self.show(ones if len(ones) > 1 else next(iter(ones.values())), lines[1:])
        return True


def _found(what: str, models: Sequence[Any], limit: int, *, by_key: bool) -> Matches:
    """Return who may be meant; ``by_key``: a primary key means that resource, whatever else is called so."""
    found = find(what, models, limit)
    of_this_key = [row for row in found.resources if str(row.pk) == what.strip()] if by_key else []
    return Matches(of_this_key) if of_this_key else found
