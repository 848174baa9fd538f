"""``manage.py resourcepool_beat``: have django-celery-beat start the periodic jobs."""

from typing import Any

from django.core.management.base import CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from resourcepool.management.base import OperatorCommand
from resourcepool.sweeps import schedule
from resourcepool.sweeps.schedule import Entry, EntryAction, InstalledEntry

WORDS = {
    EntryAction.ADD: gettext_lazy("+ %(name)s: every %(every)d s"),
    EntryAction.CHANGE: gettext_lazy("~ %(name)s: every %(every)d s (was: %(before)d s)"),
    EntryAction.KEEP: gettext_lazy("  %(name)s: kept as you changed it (%(state)s; ours: every %(every)d s)"),
    EntryAction.NOTHING: gettext_lazy("  %(name)s: every %(every)d s"),
    EntryAction.REMOVE: gettext_lazy("- %(name)s: not in the settings any more"),
}


class Command(OperatorCommand):
    about = gettext_lazy(
        "Shows which entries django-celery-beat needs to sweep, to check and to count; with --install, writes them."
        " What you have changed in the admin is kept. May be repeated."
    )
    example = "manage.py resourcepool_beat --install"

    def add_arguments(self, parser: CommandParser) -> None:
        about = _("write them; without it, nothing is changed")
        parser.add_argument("--install", action="store_true", help=about)

    def run(self, **options: Any) -> None:
        """See ``OperatorCommand``."""
        found = schedule.found()
        actions = schedule.plan(schedule.wanted(), found)
        if options["install"]:
            schedule.install(actions)
        for action, entry in actions:
            self.stdout.write(_line(action, entry, found.get(entry.name)))
        self.stdout.write(_summary([action for action, _ in actions], installed=options["install"]))


def _line(action: EntryAction, entry: Entry, found: InstalledEntry | None) -> str:
    state = "" if found is None else _state(found)
    before = found.every if found else 0
    return WORDS[action] % {"name": entry.name, "every": entry.every, "before": before, "state": state}


def _state(found: InstalledEntry) -> str:
    if not found.is_enabled:
        return _("switched off")
    return _("every %d s") % found.every if found.every else _("on another schedule")


def _summary(actions: list[EntryAction], *, installed: bool) -> str:
    changes = sum(action in (EntryAction.ADD, EntryAction.CHANGE, EntryAction.REMOVE) for action in actions)
    if not changes:
        return _("Nothing to do.")
    if installed:
        return ngettext("%d written.", "%d written.", changes) % changes
    return ngettext("%d to write: add --install.", "%d to write: add --install.", changes) % changes
