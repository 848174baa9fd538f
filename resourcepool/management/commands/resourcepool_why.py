"""``manage.py resourcepool_why``: who has it, since when, and why is it, or somebody, not served?"""

import shlex
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django.core.management.base import CommandError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.exceptions import BadOption
from resourcepool.management import why_report as report
from resourcepool.management.arguments import Argument, arg, flag, limit_argument, pool_models
from resourcepool.management.base import OperatorCommand
from resourcepool.management.layout import one_line
from resourcepool.management.locks_report import HELD_BY_PROCESS, full_report
from resourcepool.management.queues_report import QUEUE_GROUPS
from resourcepool.management.tables import table
from resourcepool.management.work_report import statuses_as_text
from resourcepool.status import why
from resourcepool.status.channels import CHANNELS
from resourcepool.status.elections import ELECTIONS
from resourcepool.status.locks.held_by_process import held_by, processes
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.lock_status import lock_named
from resourcepool.status.queues.queue_groups import queue_groups
from resourcepool.status.search import Matches, find, without_password
from resourcepool.status.work.dispensers import DISPENSERS
from resourcepool.status.work.streams import STREAMS
from resourcepool.status.work.timers import TOPICS

PLACES = {places.word: places for places in (STREAMS, DISPENSERS, TOPICS, CHANNELS, ELECTIONS)}


class Command(OperatorCommand):
    about = gettext_lazy(
        "Says of a resource who has it, since when, for how long still, how its last leases ended, and why it is not"
        " handed out; of a holder what it has, and why it waits: its place in line, what it wants, who is in front."
        " A resource is known by id, name or address, a holder by name, host or host/pid; part of it will do. Of a"
        " stream of tasks, a dispenser, a topic of timers or a channel, known by its whole name, it says why nothing"
        " runs, is handed out or is read; of an election who leads; of a queue group how many queues have no server; of a"
        " lock, a semaphore, a read-write lock or a condition who has it and who waits."
    )
    example = (
        "manage.py resourcepool_why 17\n"
        "manage.py resourcepool_why proxy 17\n"
        "manage.py resourcepool_why 198.51.100.7:3128\n"
        "manage.py resourcepool_why crawler3/4711 --json\n"
        "manage.py resourcepool_why oracle\n"
        "manage.py resourcepool_why order.timeout\n"
        "manage.py resourcepool_why election reports\n"
        "manage.py resourcepool_why lock nightly-report"
    )

    what = gettext_lazy(
        "a resource, a holder, a stream, a dispenser, a topic, a channel, an election, a queue group or a lock"
    )

    def arguments(self) -> list[Argument]:
        only_there = _(
            "look only there (app.Model, or Model; or lock, semaphore, rwlock, condition, barrier, stream,"
            " dispenser, topic, channel, election)"
        )
        return [
            arg("pool", only_there, nargs="?"),
            arg("what", self.what),
            arg("--pool", _("the same as the first word"), dest="in_pool", metavar="POOL"),
            flag("--json", _("print one JSON object")),
            limit_argument(10),
        ]

    def run(self, **options: Any) -> None:
        what, label = options["what"], options["pool"] or options["in_pool"]
        if not (name := what.strip()):
            raise BadOption("what", what, str(self.what))
        if label in [*LockKind, *PLACES]:
            if not self._is_name(name, label):
                text = _("no %(kind)s is called %(name)s")
                raise CommandError(text % {"kind": label, "name": one_line(name)})
            return
        models = _pools(label)
        found = _found(what, models, options["limit"], by_key=label is not None)
        said = one_line(without_password(what), 120)
        if not found.resources and not found.holders:
            if label is None and (self._is_name(name) or self._holds_locks(name)):
                return
            with suppress(BadOption):
                pool_models(name)
                text = _(
                    "%(name)r is a pool, not one of its resources; see manage.py resourcepool_status %(name)s"
                )
                raise CommandError(text % {"name": said})
            text = _(
                "no resource, running lease, place in line, stream, dispenser, topic, channel, election, queue group or"
                " lock is called %r"
            )
            raise CommandError(text % said)
        if len(found.resources) + len(found.holders) > 1 and not found.process:
            self.show(found, report.candidates_as_text(found))
            told = _("%(said)r may be any of these; say which, for example: %(command)s")
            command = f"manage.py resourcepool_why {report.first_as_typed(found)}"
            raise CommandError(told % {"said": said, "command": command})
        if found.resources:
            resource = why.resource(found.resources[0])
            self.show(resource, report.resource_as_text(resource))
        else:
            meant = found.process or found.holders[0]
            threads = found.holders if found.process else []
            holder = why.holder(meant, models, options["limit"], threads=threads)
            self.show(holder, report.holder_as_text(holder))

    def _is_name(self, name: str, kind: str = "") -> bool:
        """Show all that has this name, or the one of this kind; tell whether there is any."""
        asked = [PLACES[kind]] if kind in PLACES else [] if kind else PLACES.values()
        data: dict[str, Any] = {places.word: one for places in asked if (one := places.get(name))}
        parts = [part for word in data for part in ("", *statuses_as_text(PLACES[word].model, [data[word]]))]
        if not kind and name.isprintable() and (found := queue_groups([name])):
            data["queue_group"] = found[0]
            text = _("All of it: manage.py resourcepool_queues show %s") % shlex.quote(one_line(name))
            parts += ["", table(found, QUEUE_GROUPS), text]
        if kind not in PLACES and (locks := lock_named(name, kind)):
            in_data, lines = full_report(locks)
            data |= in_data
            parts += ["", *lines]
        if data:
            self.show(data if len(data) > 1 else next(iter(data.values())), parts[1:])
        return bool(data)

    def _holds_locks(self, holder: str) -> bool:
        """Show what the processes hold that may be meant by this; tell whether they hold anything."""
        if found := held_by(processes(holder)):
            self.show({"holds": found}, [table(found, HELD_BY_PROCESS)])
        return bool(found)


def _pools(label: str | None) -> list[Any]:
    """Return the models to search; raises BadOption, which names the kinds of what is no pool, too."""
    try:
        return pool_models(label)
    except BadOption as error:
        raise BadOption(error.name, label, ", ".join([error.allowed, *LockKind, *PLACES])) from None


def _found(what: str, models: Sequence[Any], limit: int, *, by_key: bool) -> Matches:
    """Return who may be meant; ``by_key``: a primary key means that resource, whatever else is called so."""
    found = find(what, models, limit)
    of_this_key = [row for row in found.resources if str(row.pk) == what.strip()] if by_key else []
    return Matches(of_this_key) if of_this_key else found
