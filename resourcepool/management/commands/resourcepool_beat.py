"""``manage.py resourcepool_beat``: have django-celery-beat start the periodic jobs."""

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.management.arguments import Argument, flag
from resourcepool.management.base import OperatorCommand
from resourcepool.sweeps import schedule
from resourcepool.sweeps.schedule import EntryAction, InstalledEntry

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

    def arguments(self) -> list[Argument]:
        return [flag("--install", _("write them; without it, nothing is changed"))]

    def run(self, **options: Any) -> None:
        found = schedule.installed_entries()
        actions = schedule.plan(schedule.desired_entries(), found)
        if options["install"]:
            schedule.install(actions)
        for action, entry in actions:
            before = found.get(entry.name)
            told = {"every": entry.every, "before": before.every if before else 0, "state": _state(before)}
            self.stdout.write(WORDS[action] % {"name": entry.name, **told})
        writes = (EntryAction.ADD, EntryAction.CHANGE, EntryAction.REMOVE)
        changes = sum(action in writes for action, _entry in actions)
        if not changes:
            self.stdout.write(_("Nothing to do."))
        elif options["install"]:
            self.stdout.write(_("%d written.") % changes)
        else:
            self.stdout.write(_("%d to write: add --install.") % changes)


def _state(found: InstalledEntry | None) -> str:
    if found is None:
        return ""
    if not found.is_enabled:
        return _("switched off")
    return _("every %d s") % found.every if found.every else _("on another schedule")
