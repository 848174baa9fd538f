"""``manage.py resourcepool_locks``: holders, waiters and wait cycles of locks, and operations on them."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from django.core.management.base import CommandError

from resourcepool.locks.bulk_release import release_all
from resourcepool.management.arguments import arg, field_values, flag, operation_arguments
from resourcepool.management.base import actor
from resourcepool.management.layout import FittedTable, name_value_lines, one_line
from resourcepool.management.subcommands import (
    CommandGroup,
    Options,
    Report,
    Subcommand,
    action,
    operates,
    page_arguments,
    query,
)
from resourcepool.management.work_commands import next_page_hint
from resourcepool.operations import Operation
from resourcepool.operations.locks import REMOVE_BARRIER, RESIZE, REVOKE, REVOKE_HOLDER
from resourcepool.status.locks.cycles import KINDS, Cycle, cycles, lock_badge, short_holder
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.lock_status import MAX_NAMES, LockStatus, lock_named, locks
from resourcepool.status.locks.summary import held_by, lock_facts, processes
from resourcepool.status.system import count, seconds, text, whole
from resourcepool.status.times import duration
from resourcepool.translation import gettext as _, gettext_lazy

HOLDER = 26  # characters of a holder in a table


class Command(CommandGroup):
    about = gettext_lazy(
        "Shows locks, semaphores, read-write locks, conditions and barriers with their holders, waiters and wait"
        " cycles; revokes a lock, or everything that one process holds; resizes a semaphore; removes a barrier."
    )
    example = (
        "manage.py resourcepool_locks\n"
        "manage.py resourcepool_locks list --waited --watch\n"
        "manage.py resourcepool_locks show nightly-report\n"
        "manage.py resourcepool_locks cycles --json\n"
        "manage.py resourcepool_locks revoke nightly-report --reason 'web-3 hangs'\n"
        "manage.py resourcepool_locks revoke-holder web-3/4711 --reason 'web-3 hangs'\n"
        "manage.py resourcepool_locks resize licence 8 --reason 'three more bought'\n"
        "manage.py resourcepool_locks remove 'import done' --reason 'the import crashed'"
    )

    def subcommands(self) -> Iterator[Subcommand]:
        name, kinds = arg("name", _("its name")), [str(kind) for kind in LockKind]
        kind = arg("--kind", _("filter by kind"), default="", choices=kinds)
        which = [
            kind,
            arg("--prefix", _("only names starting with TEXT"), default="", metavar="TEXT"),
            flag("--held", _("only names with holders")),
            flag("--waited", _("only names with waiters")),
        ]
        yield query("list", _("list all names (default)"), _list, *which, *page_arguments(MAX_NAMES))
        yield query("show", _("show one name: holders, waiters, wait cycles"), self.show_name, name, kind)
        yield query("cycles", _("show wait cycles"), _cycles)
        dry_run = flag("--dry-run", _("show what would be done, and change nothing"))
        if_several, kinds = _("kind, if several have this name"), [str(kind) for kind in KINDS]
        held_kind = arg("--kind", if_several, default="", choices=kinds)
        yield operates(REVOKE, self.revoke, name, held_kind, dry_run)
        holder = arg("holder", _("holder as shown in lists, or the start of it, e.g. web-1/4711"))
        revokes = _("revoke everything that one process holds")
        yield operates(REVOKE_HOLDER, self.revoke_holder, holder, dry_run, about=revokes)
        permits, reason = arg("permits", RESIZE.fields[0].help), operation_arguments([REVOKE], requires=True)
        resize = partial(self.resize, RESIZE)
        yield action(RESIZE.name, RESIZE.title, resize, name, permits, *reason, dry_run)
        removes = _("remove a barrier and release its waiters")
        yield operates(REMOVE_BARRIER, self.remove, name, dry_run, about=removes)

    def show_name(self, options: Options) -> Report:
        return full_report(_named(options["name"], options["kind"]))

    def revoke(self, operation: Operation, options: Options) -> None:
        statuses = [status for status in _named(options["name"], options["kind"]) if status.kind in KINDS]
        if len(statuses) > 1:
            kinds = ", ".join(status.kind for status in statuses)
            raise CommandError(_("several kinds have this name: add --kind, one of %s") % kinds)
        if not statuses:
            text = _(
                "conditions and barriers have no holders; nothing was changed. To remove a barrier:"
                " resourcepool_locks remove"
            )
            raise CommandError(text)
        (one,) = statuses
        self._operate(operation, one, options, _("Would revoke %(name)s."), is_noop=not one.held)

    def revoke_holder(self, operation: Operation, options: Options) -> None:
        holder, matching = one_line(options["holder"]), processes(options["holder"])
        if not matching:
            raise CommandError(_("no process matching %s holds anything; nothing was changed") % holder)
        (reason,) = field_values(operation, options).values()
        self.show([], [FittedTable(held_by(matching), HELD_BY_PROCESS)])
        if len(matching) > 1:
            text = _("%(holder)s matches several processes: %(processes)s; name one. Nothing was changed.")
            raise CommandError(text % {"holder": holder, "processes": ", ".join(sorted(matching))})
        if options["dry_run"]:
            self.stdout.write(_("Would revoke all of these."))
            return
        (process,) = matching
        revoked = release_all(process, reason=reason, actor=actor())
        self.stdout.write(_("Revoked permits: %d.") % revoked)

    def resize(self, operation: Operation, options: Options) -> None:
        (one,) = _named(options["name"], LockKind.SEMAPHORE)
        would = _("Would resize %(name)s from %(before)d to %(after)d permits.")
        self._operate(operation, one, options, would)
        if options["dry_run"]:
            return
        (now,) = _named(one.name, LockKind.SEMAPHORE)
        if (beyond := now.held - now.permits) > 0:
            self.stdout.write(_("%d above the new number are held until released.") % beyond)

    def remove(self, operation: Operation, options: Options) -> None:
        (one,) = _named(options["name"], LockKind.BARRIER)
        self._operate(operation, one, options, _("Would remove %(name)s."), is_noop=not one.creator)

    def _operate(
        self, operation: Operation, one: LockStatus, options: Options, would: str, *, is_noop: bool = False
    ) -> None:
        """Run an operation on this name; ``is_noop``: known to change nothing, so raise CommandError."""
        answered = field_values(operation, options)
        if is_noop:
            raise CommandError(operation.skipped_message % {"count": 1})
        if options["dry_run"]:
            after = int(options.get("permits", 0))
            values = {"name": one_line(one.called, 250), "before": one.permits, "after": after}
            self.stdout.write(would % values)
            return
        self.operate(operation, one.kind.rows().filter(name=one.name), [one.name], answered, longest=250)


def _named(name: str, kind: str) -> list[Any]:
    statuses = lock_named(name, kind)
    if not statuses and kind:
        values = {"what": one_line(LockKind(kind).called(name), 250)}
        raise CommandError(_("there is no %(what)s (names unused for a day are removed)") % values)
    if not statuses:
        text = _(
            "no lock, semaphore, read-write lock, condition or barrier is called %s (names unused for a day are"
            " removed)"
        )
        raise CommandError(text % one_line(name))
    return statuses


def _list(options: Options) -> Report:
    filters = ("kind", "prefix", "held", "waited", "after", "limit")
    found = locks(**{option: options[option] for option in filters})
    has_waiters = any(status.waiters for status in found.locks)
    wait_cycles = cycles() if has_waiters and not options["json"] else []
    return found, [*locks_as_text(found.locks, wait_cycles), *next_page_hint("list", found.after)]


def _cycles(_options: Options) -> Report:
    found = cycles()
    return {"cycles": found}, cycles_as_text(found)


def _held(one: LockStatus) -> str:
    return f"{one.held:,}/{one.permits:,}" if one.kind.is_held else "-"


def _first(one: LockStatus) -> str:
    if one.kind is LockKind.BARRIER:
        return str(lock_badge(one).label)
    if not one.kind.is_held:
        return _("%d notified") % one.held if one.held else "-"
    return short_holder(one.in_use[0].holder) if one.in_use else "-"


NAMED = (text(gettext_lazy("kind"), "kind"), text(gettext_lazy("name"), "name", widest=24))
COLUMNS = (
    *NAMED,
    whole(gettext_lazy("held"), _held),
    text(gettext_lazy("holder"), _first, widest=HOLDER),
    count(gettext_lazy("waiters"), "waiters"),
    seconds(gettext_lazy("longest wait"), "longest_wait"),
)
HELD_BY_PROCESS = (
    *NAMED,
    count(gettext_lazy("permits"), "permits"),
    text(gettext_lazy("holder"), "who", widest=HOLDER),
    text(gettext_lazy("process"), "process"),
)


def locks_as_text(statuses: Sequence[LockStatus], wait_cycles: Sequence[Cycle]) -> list[Any]:
    """Return a table, followed by the wait cycles if there are any."""
    if not statuses:
        return [_("No names found.")]
    return [FittedTable(statuses, COLUMNS), *(["", *cycles_as_text(wait_cycles)] if wait_cycles else [])]


def full_report(statuses: Sequence[LockStatus]) -> tuple[dict[str, Any], Iterator[Any]]:
    """Return these statuses and the wait cycles about them, as data and as text."""
    about = [
        cycle for cycle in cycles() if any(cycle.is_about(status.kind, status.name) for status in statuses)
    ]
    return {"locks": statuses, "cycles": about}, _full_report(statuses, about)


def _full_report(statuses: Iterable[LockStatus], wait_cycles: Sequence[Cycle]) -> Iterator[Any]:
    for number, status in enumerate(statuses):
        about = [cycle for cycle in wait_cycles if cycle.is_about(status.kind, status.name)]
        yield from [""] * bool(number)
        yield one_line(status.called, 250)
        yield name_value_lines((f"{name}:", value) for name, value in lock_facts(status, about))


def cycles_as_text(wait_cycles: Sequence[Cycle]) -> Iterator[Any]:
    if not wait_cycles:
        yield _("No wait cycle.")
    for cycle in wait_cycles:
        yield _("Deadlock for %s:") % duration(cycle.lasts)
        yield from (f"  {one_line(link, None)}" for link in cycle.links)
