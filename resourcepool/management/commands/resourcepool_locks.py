"""``manage.py resourcepool_locks``: who holds which lock, who waits, and which of them wait for each other."""

from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from resourcepool.locks.bulk_release import release_all
from resourcepool.management import locks_report as report
from resourcepool.management.arguments import arg, field_values, flag
from resourcepool.management.base import actor
from resourcepool.management.layout import one_line
from resourcepool.management.subcommands import (
    CommandGroup,
    Options,
    Subcommand,
    action,
    field_arguments,
    page_arguments,
    query,
)
from resourcepool.management.tables import table
from resourcepool.management.watch_mode import Report
from resourcepool.management.work_report import next_page_hint
from resourcepool.operations import Operation
from resourcepool.operations.locks import REMOVE_BARRIER, RESIZE, REVOKE, REVOKE_HOLDER
from resourcepool.status.locks.cycles import KINDS, cycles
from resourcepool.status.locks.held_by_process import held_by, processes
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.lock_status import MAX_NAMES, LockStatus, lock_named, locks


class Command(CommandGroup):
    about = gettext_lazy(
        "Shows locks, semaphores, read-write locks, conditions and barriers: who holds them, who waits and for how"
        " long, and who waits for each other; takes one away from its holders, or everything from one holder; changes"
        " how many permits a semaphore has; removes a barrier."
    )
    example = (
        "manage.py resourcepool_locks\n"
        "manage.py resourcepool_locks list --waited --watch\n"
        "manage.py resourcepool_locks show nightly-report\n"
        "manage.py resourcepool_locks cycles --json\n"
        "manage.py resourcepool_locks free nightly-report --reason 'web-3 hangs'\n"
        "manage.py resourcepool_locks revoke-holder web-3/4711 --reason 'web-3 hangs'\n"
        "manage.py resourcepool_locks resize licence 8 --reason 'three more bought'\n"
        "manage.py resourcepool_locks remove 'import done' --reason 'the import died'"
    )

    def subcommands(self) -> Iterator[Subcommand]:
        name, kinds = arg("name", _("its name")), [str(kind) for kind in LockKind]
        kind = arg("--kind", _("only these"), default="", choices=kinds)
        which = [
            kind,
            arg("--prefix", _("only names that begin so"), default="", metavar="TEXT"),
            flag("--held", _("only those that somebody holds")),
            flag("--waited", _("only those that somebody waits for")),
        ]
        yield query("list", _("shows all names; the default"), _list, *which, *page_arguments(MAX_NAMES))
        yield query("show", _("shows one name: holders, waiters, circles"), self.show_name, name, kind)
        yield query("cycles", _("shows who waits for each other"), _cycles)
        tells = [*field_arguments(REVOKE), flag("--dry-run", _("only say what would be done"))]
        of_several, kinds = _("which one, where several have this name"), [str(kind) for kind in KINDS]
        one_of_these = arg("--kind", of_several, default="", choices=kinds)
        yield action(REVOKE.name, REVOKE.title, self.revoke, name, one_of_these, *tells)
        takes = _("takes everything away that one process holds")
        holder = arg("holder", _("as lists show it; how it begins will do: web-1/4711"))
        yield action(REVOKE_HOLDER.name, takes, self.revoke_holder, holder, *tells)
        yield action(
            RESIZE.name, RESIZE.title, self.resize, name, arg("permits", RESIZE.fields[0].help), *tells
        )
        removes = _("removes a barrier: all go on who wait before it")
        yield action(REMOVE_BARRIER.name, removes, self.remove, name, *tells)

    def show_name(self, options: Options) -> Report:
        return report.full_report(_named(options["name"], options["kind"]))

    def revoke(self, options: Options) -> None:
        found = [one for one in _named(options["name"], options["kind"]) if one.kind in KINDS]
        if len(found) > 1:
            kinds = ", ".join(one.kind for one in found)
            raise CommandError(_("there are several of this name: add --kind, one of %s") % kinds)
        if not found:
            text = _(
                "conditions and barriers are held by nobody; nothing was changed. A barrier is removed with:"
                " resourcepool_locks remove"
            )
            raise CommandError(text)
        (one,) = found
        self._operate(REVOKE, one, options, _("Would free %(name)s."), is_vain=not one.held)

    def revoke_holder(self, options: Options) -> None:
        told, found = one_line(options["holder"]), processes(options["holder"])
        if not found:
            raise CommandError(_("no process called %s holds anything; nothing was changed") % told)
        (reason,) = field_values(REVOKE_HOLDER, options).values()
        self.show([], [table(held_by(found), report.HELD_BY_PROCESS)])
        if len(found) > 1:
            text = _("%(holder)s may be any of %(processes)s: say which; nothing was changed")
            raise CommandError(text % {"holder": told, "processes": ", ".join(sorted(found))})
        if options["dry_run"]:
            self.stdout.write(_("Would take all of this away."))
            return
        (process,) = found
        released = release_all(process, reason=reason, actor=actor())
        self.stdout.write(ngettext("%d permit was freed.", "%d permits were freed.", released) % released)

    def resize(self, options: Options) -> None:
        (one,) = _named(options["name"], LockKind.SEMAPHORE)
        would = _("Would resize %(name)s from %(before)d to %(after)d permits.")
        self._operate(RESIZE, one, options, would)
        if options["dry_run"]:
            return
        (now,) = _named(one.name, LockKind.SEMAPHORE)
        if (beyond := now.held - now.permits) > 0:
            self.stdout.write(_("%d too many are held, until they are released.") % beyond)

    def remove(self, options: Options) -> None:
        (one,) = _named(options["name"], LockKind.BARRIER)
        self._operate(REMOVE_BARRIER, one, options, _("Would remove %(name)s."), is_vain=not one.stands)

    def _operate(
        self, operation: Operation, one: LockStatus, options: Options, would: str, *, is_vain: bool = False
    ) -> None:
        """Do it to this name; raises CommandError if it changes nothing, as far as is known already: ``is_vain``."""
        answered = field_values(operation, options)
        if is_vain:
            self.report_result(operation, 0, 1)
        if options["dry_run"]:
            after = int(options.get("permits", 0))
            told = {"name": one_line(one.called, 250), "before": one.permits, "after": after}
            self.stdout.write(would % told)
            return
        rows = one.kind.rows().filter(name=one.kind.stored(one.name))
        self.report_result(operation, operation.do(rows, actor=actor(), **answered), 1)


def _named(name: str, kind: str) -> list[Any]:
    found = lock_named(name, kind)
    if not found and kind:
        told = {"what": one_line(LockKind(kind).called(name), 250)}
        raise CommandError(_("there is no %(what)s, or nobody has used it for long") % told)
    if not found:
        text = _(
            "no lock, semaphore, read-write lock, condition or barrier is called %s, or nobody has used it for long"
        )
        raise CommandError(text % one_line(name))
    return found


def _list(options: Options) -> Report:
    asked = ("kind", "prefix", "held", "waited", "after", "limit")
    found = locks(**{option: options[option] for option in asked})
    circles = cycles() if any(one.waiters for one in found.locks) and not options["json"] else []
    return found, [*report.locks_as_text(found.locks, circles), *next_page_hint("list", found.after)]


def _cycles(_options: Options) -> Report:
    found = cycles()
    return {"cycles": found}, report.cycles_as_text(found)
