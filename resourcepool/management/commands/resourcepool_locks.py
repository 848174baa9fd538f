"""``manage.py resourcepool_locks``: who holds which lock, who waits, and which of them wait for each other."""

import argparse
import shlex
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from resourcepool.locks.releasing import release_all
from resourcepool.management import locks_report as report
from resourcepool.management import watching
from resourcepool.management.arguments import entered
from resourcepool.management.base import OperatorCommand, actor
from resourcepool.management.layout import plain
from resourcepool.operations import Operation
from resourcepool.operations.locks import FREE, FREE_HOLDER, REMOVE_BARRIER, RESIZE
from resourcepool.status.locks.cycles import KINDS, cycles
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.names import MOST_NAMES, LockStatus, lock_named, locks
from resourcepool.status.locks.of_holder import held_by, processes

PAGING = ("kind", "prefix", "held", "waited", "after", "limit")


class Command(OperatorCommand):
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
        "manage.py resourcepool_locks free-holder web-3/4711 --reason 'web-3 hangs'\n"
        "manage.py resourcepool_locks resize licence 8 --reason 'three more bought'\n"
        "manage.py resourcepool_locks remove 'import done' --reason 'the import died'"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """See ``BaseCommand``."""
        acts = watching.add_acts(parser)
        listed = acts.add_parser("list", help=_("shows all names; the default"))
        listed.add_argument("--kind", choices=[str(kind) for kind in LockKind], help=_("only these"))
        listed.add_argument("--prefix", metavar="TEXT", help=_("only names that begin so"))
        listed.add_argument("--held", action="store_true", help=_("only those that somebody holds"))
        listed.add_argument("--waited", action="store_true", help=_("only those that somebody waits for"))
        listed.add_argument("--after", metavar="NAME", help=_("the next page: those after this name"))
        about = _("so many on a page; default: %d") % MOST_NAMES
        listed.add_argument("--limit", type=int, metavar="N", help=about)
        show = acts.add_parser("show", help=_("shows one name: holders, waiters, circles"))
        show.add_argument("name", help=_("its name"))
        show.add_argument("--kind", choices=[str(kind) for kind in LockKind], help=_("only these"))
        circles = acts.add_parser("cycles", help=_("shows who waits for each other"))
        for act in (listed, show, circles):
            watching.add_watch(act, default=argparse.SUPPRESS)
        free = acts.add_parser("free", help=str(FREE.title))
        resize = acts.add_parser("resize", help=str(RESIZE.title))
        remove = acts.add_parser(REMOVE_BARRIER.name, help=_("removes a barrier: all go on who wait before it"))
        for act in (free, resize, remove):
            act.add_argument("name", help=_("its name"))
        resize.add_argument("permits", help=str(RESIZE.fields[0].help))
        free.add_argument(
            "--kind", choices=[str(kind) for kind in KINDS], help=_("which one, where several have this name")
        )
        holder = acts.add_parser(FREE_HOLDER.name, help=_("takes everything away that one process holds"))
        about = _("as lists show it; how it begins will do: web-1/4711")
        holder.add_argument("holder", help=about)
        for act in (free, holder, resize, remove):
            act.add_argument("--reason", required=True, help=str(FREE.fields[0].help))
            act.add_argument("--dry-run", action="store_true", help=_("only say what would be done"))

    def run(self, **options: Any) -> None:
        """See ``OperatorCommand``."""
        does = {
            FREE.name: self._free,
            FREE_HOLDER.name: self._free_holder,
            RESIZE.name: self._resize,
            REMOVE_BARRIER.name: self._remove,
        }
        if options["do"] in does:
            if options["json"] or options["watch"] is not None:
                wrong = _("--watch and --json are not for %s; nothing was changed") % options["do"]
                raise CommandError(wrong)
            does[options["do"]](options)
            return
        looks = {"show": _show, "cycles": _cycles}
        look = looks.get(options["do"], _list)
        watching.watch(self, lambda: look(options), options)

    def _free(self, options: dict[str, Any]) -> None:
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
        asked = entered(FREE, options)
        if not one.held:
            raise CommandError(FREE.otherwise % {"count": 1})
        if options["dry_run"]:
            self.stdout.write(_("Would free %s.") % plain(one.called, 250))
            return
        self._do(FREE, one, asked)

    def _free_holder(self, options: dict[str, Any]) -> None:
        told, found = plain(options["holder"]), processes(options["holder"])
        if not found:
            raise CommandError(_("no process called %s holds anything; nothing was changed") % told)
        (reason,) = entered(FREE_HOLDER, options).values()
        theirs = held_by(found)
        self.show([], report.held_names(theirs))
        if len(found) > 1:
            text = _("%(holder)s may be any of %(processes)s: say which; nothing was changed")
            raise CommandError(text % {"holder": told, "processes": ", ".join(sorted(found))})
        if options["dry_run"]:
            self.stdout.write(_("Would take all of this away."))
            return
        (process,) = found
        released = release_all(process, reason=reason, actor=actor())
        self.stdout.write(ngettext("%d permit was freed.", "%d permits were freed.", released) % released)

    def _resize(self, options: dict[str, Any]) -> None:
        (one,) = _named(options["name"], LockKind.SEMAPHORE)
        asked = entered(RESIZE, options)
        told = {"name": plain(one.called, 250), "before": one.permits, "after": int(asked["permits"])}
        if options["dry_run"]:
            self.stdout.write(_("Would resize %(name)s from %(before)d to %(after)d permits.") % told)
            return
        self._do(RESIZE, one, asked)
        (now,) = _named(one.name, LockKind.SEMAPHORE)
        if now.held > now.permits:
            beyond = now.held - now.permits
            self.stdout.write(_("%d too many are held, until they are released.") % beyond)

    def _remove(self, options: dict[str, Any]) -> None:
        (one,) = _named(options["name"], LockKind.BARRIER)
        asked = entered(REMOVE_BARRIER, options)
        if options["dry_run"]:
            if not one.stands:
                raise CommandError(REMOVE_BARRIER.otherwise % {"count": 1})
            self.stdout.write(_("Would remove %s.") % plain(one.called, 250))
            return
        self._do(REMOVE_BARRIER, one, asked)

    def _do(self, operation: Operation, one: LockStatus, asked: dict[str, Any]) -> None:
        done = operation.do(one.kind.rows().filter(name=one.kind.stored(one.name)), actor=actor(), **asked)
        if not done:
            raise CommandError(operation.otherwise % {"count": 1})
        self.stdout.write(operation.done % {"count": done})


def _named(name: str, kind: str | None) -> list[Any]:
    found = lock_named(name, kind or "")
    if not found and kind:
        told = {"what": plain(LockKind(kind).called(name), 250)}
        raise CommandError(_("there is no %(what)s, or nobody has used it for long") % told)
    if not found:
        text = _(
            "no lock, semaphore, read-write lock, condition or barrier is called %s, or nobody has used it for long"
        )
        raise CommandError(text % plain(name))
    return found


def _list(options: dict[str, Any]) -> watching.Look:
    asked = {option: options.get(option) for option in PAGING}
    page = locks(**{option: value for option, value in asked.items() if value is not None})
    more = (
        ["", _("There are more: list --after %s") % shlex.quote(plain(page.after, None))] if page.after else []
    )
    circles = cycles() if any(one.waiters for one in page.locks) and not options["json"] else []
    return page, [*report.locks_as_text(page.locks, circles), *more]


def _show(options: dict[str, Any]) -> watching.Look:
    found, circles = _named(options["name"], options["kind"]), cycles()
    about = [circle for circle in circles if any(circle.is_about(one.kind, one.name) for one in found)]
    return {"locks": found, "cycles": about}, report.locks_in_full(found, about)


def _cycles(_options: dict[str, Any]) -> watching.Look:
    found = cycles()
    return {"cycles": found}, report.cycles_as_text(found)
