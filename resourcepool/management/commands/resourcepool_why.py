"""``manage.py resourcepool_why``: who holds a resource or a lock, since when, and why a waiter is not served."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from django.core.management.base import CommandError

from resourcepool.events import localized
from resourcepool.exceptions import BadOption
from resourcepool.management.arguments import Argument, arg, flag, limit_argument, pool_models
from resourcepool.management.base import OperatorCommand
from resourcepool.management.commands.resourcepool_locks import HELD_BY_PROCESS, full_report
from resourcepool.management.commands.resourcepool_status import LEASE_COLUMNS
from resourcepool.management.layout import FittedTable, more_rows_note, name_value_lines, one_line
from resourcepool.management.work_commands import statuses_as_text
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.lock_status import lock_named
from resourcepool.status.locks.summary import held_by, processes
from resourcepool.status.queues.queue_groups import queue_groups
from resourcepool.status.queues.system import SYSTEM
from resourcepool.status.registry import named_systems
from resourcepool.status.resources import why
from resourcepool.status.resources.why import HolderExplanation, ResourceExplanation
from resourcepool.status.search import Matches, find, without_password
from resourcepool.status.system import seconds, text
from resourcepool.status.times import timestamp_with_age
from resourcepool.translation import gettext as _, gettext_lazy


class Command(OperatorCommand):
    about = gettext_lazy(
        "Explains one thing. A resource (id, name or address; a part is enough): its holder, since when, when its lease"
        " expires, how the last leases ended, and why it cannot be leased. A holder (name, host or host/pid; a part is"
        " enough): its leases, and why it waits: place in line, selectors, and the waiters ahead of it. By whole"
        " name, a stream, a dispenser, a topic or a channel: why no task runs or is handed out, no timer fires, or no"
        " message is read; an"
        " election: its leader; a queue group: how many queues have no server; a lock, semaphore, read-write lock or"
        " condition: its holders and waiters."
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
        where = _("search only this pool (app.Model, or Model) or kind (%s)")
        return [
            arg("pool", where % _(", ").join([*LockKind, *named_systems()]), nargs="?"),
            arg("what", self.what),
            arg("--pool", _("same as the POOL argument"), dest="in_pool", metavar="POOL"),
            flag("--json", _("print one JSON object")),
            limit_argument(10),
        ]

    def run(self, **options: Any) -> None:
        what, label = options["what"], options["pool"] or options["in_pool"]
        if not (name := what.strip()):
            raise BadOption("what", what, str(self.what))
        if label in [*LockKind, *named_systems()]:
            if not self._show_named(name, label):
                text = _("no %(kind)s named %(name)s")
                raise CommandError(text % {"kind": label, "name": one_line(name)})
            return
        models = _pools(label)
        matches = _matches(what, models, options["limit"], by_key=label is not None)
        text_shown = one_line(without_password(what), 120)
        if not matches.resources and not matches.holders:
            if label is None and (self._show_named(name) or self._show_locks_of(name)):
                return
            with suppress(BadOption):
                pool_models(name)
                text = _("%(name)r is a pool, not a resource; run manage.py resourcepool_status %(name)s")
                raise CommandError(text % {"name": text_shown})
            text = _("no resource, active lease, waiter, %(systems)s, queue group or lock named %(name)r")
            words = _(", ").join(system.title for system in named_systems().values())
            raise CommandError(text % {"systems": words, "name": text_shown})
        if len(matches.resources) + len(matches.holders) > 1 and not matches.process:
            self.show(matches, candidates_as_text(matches))
            text = _("%(text)r matches all of these; choose one, for example: %(command)s")
            command = f"manage.py resourcepool_why {first_as_typed(matches)}"
            raise CommandError(text % {"text": text_shown, "command": command})
        if matches.resources:
            resource = why.resource(matches.resources[0])
            self.show(resource, resource_as_text(resource))
        else:
            name = matches.process or matches.holders[0]
            threads = matches.holders if matches.process else []
            holder = why.holder(name, models, options["limit"], threads=threads)
            self.show(holder, holder_as_text(holder))

    def _show_named(self, name: str, kind: str = "") -> bool:
        """Show everything of this name, or only of this kind; return whether there is any."""
        systems = {word: system for word, system in named_systems().items() if kind in ("", word)}
        data: dict[str, Any] = {
            word: status for word, system in systems.items() if (status := system.reader.get(name))
        }
        parts = [part for word in data for part in ("", *statuses_as_text(systems[word], [data[word]]))]
        if not kind and name.isprintable() and (groups := queue_groups([name])):
            data["queue_group"] = groups[0]
            text = _("Details: manage.py resourcepool_queues show %s") % shlex.quote(one_line(name))
            parts += ["", FittedTable(groups, SYSTEM.figures), text]
        if kind not in systems and (locks := lock_named(name, kind)):
            in_data, lines = full_report(locks)
            data |= in_data
            parts += ["", *lines]
        if data:
            self.show(data if len(data) > 1 else next(iter(data.values())), parts[1:])
        return bool(data)

    def _show_locks_of(self, holder: str) -> bool:
        """Show the locks held by the processes that match ``holder``; return whether there are any."""
        if held := held_by(processes(holder)):
            self.show({"holds": held}, [FittedTable(held, HELD_BY_PROCESS)])
        return bool(held)


def _pools(label: str | None) -> list[Any]:
    """Return the models to search; raises BadOption, which names all pools and kinds."""
    try:
        return pool_models(label)
    except BadOption as error:
        raise BadOption(error.name, label, ", ".join([error.allowed, *LockKind, *named_systems()])) from None


def _matches(what: str, models: Sequence[Any], limit: int, *, by_key: bool) -> Matches:
    """Return the matches; ``by_key``: a primary key matches only that resource."""
    matches = find(what, models, limit)
    with_key = [row for row in matches.resources if str(row.pk) == what.strip()] if by_key else []
    return Matches(with_key) if with_key else matches


ENDINGS = (
    text(gettext_lazy("at"), lambda ending: timestamp_with_age(ending.at, ending.age)),
    text(gettext_lazy("how"), "what.label"),
    seconds(gettext_lazy("held for"), "seconds"),
    text(gettext_lazy("holder"), "holder"),
    text(gettext_lazy("by"), "actor"),
    text(gettext_lazy("reason"), lambda ending: localized(ending.reason)),
)


def resource_as_text(resource: ResourceExplanation) -> Iterator[Any]:
    yield f"{resource.pool} {one_line(resource.row.pk)}: {one_line(resource.row, 120)}"
    yield name_value_lines((f"{name}:", value) for name, value in why.facts(resource))
    yield ""
    if resource.endings:
        yield _("How its last leases ended:")
        yield FittedTable(resource.endings, ENDINGS)
    else:
        yield _("No ended leases in the history.")


def holder_as_text(holder: HolderExplanation) -> Iterator[Any]:
    yield one_line(holder.holder, 200)
    if holder.leases:
        yield from [
            "",
            _("Leases:"),
            FittedTable(holder.leases, LEASE_COLUMNS),
            *more_rows_note(len(holder.leases), holder.leases_total),
        ]
    if holder.holds:
        yield from ["", FittedTable(holder.holds, HELD_BY_PROCESS)]
    for waiter in holder.waits:
        yield from ["", waiter.said]
    if not holder.leases and not holder.waits:
        yield _("It no longer holds or waits for anything.")


def candidates_as_text(matches: Matches) -> Iterator[str]:
    """Yield the matches, as they can be typed."""
    for row in matches.resources:
        yield f"{row._meta.label} {one_line(row.pk)}: {one_line(row, 120)}"
    for name in matches.holders:
        yield _("holder %s") % one_line(name, 200)
    if matches.more:
        yield _("... more matches; type more of the name")


def first_as_typed(matches: Matches) -> str:
    """Return arguments of ``resourcepool_why`` that match only the first of them."""
    for row in matches.resources:
        return f"{row._meta.label} {shlex.quote(one_line(row.pk))}"
    return shlex.quote(one_line(matches.holders[0]))
