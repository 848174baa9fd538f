"""``manage.py resourcepool_beat``: schedules the periodic jobs in django-celery-beat."""

from typing import Any

from resourcepool.management.arguments import Argument, flag
from resourcepool.management.base import OperatorCommand
from resourcepool.sweeps import schedule
from resourcepool.sweeps.schedule import EntryAction, InstalledEntry
from resourcepool.translation import gettext as _, gettext_lazy

TEXTS = {
    EntryAction.ADD: gettext_lazy("+ %(name)s: every %(every)d s"),
    EntryAction.CHANGE: gettext_lazy("~ %(name)s: every %(every)d s (was: %(before)d s)"),
    EntryAction.KEEP: gettext_lazy("  %(name)s: your change is kept (%(state)s; default: every %(every)d s)"),
    EntryAction.NOTHING: gettext_lazy("  %(name)s: every %(every)d s"),
    EntryAction.REMOVE: gettext_lazy("- %(name)s: no longer in the settings"),
}


class Command(OperatorCommand):
    about = gettext_lazy(
        "Shows the django-celery-beat entries for sweeps, health checks and statistics; with --install,"
        " writes them. Your changes in the admin are kept. Safe to repeat."
    )
    example = "manage.py resourcepool_beat --install"

    def arguments(self) -> list[Argument]:
        return [flag("--install", _("write the entries; default: only show them"))]

    def run(self, **options: Any) -> None:
        installed = schedule.installed_entries()
        actions = schedule.plan(schedule.desired_entries(), installed)
        if options["install"]:
            schedule.install(actions)
        for action, entry in actions:
            before = installed.get(entry.name)
            parameters = {
                "every": entry.every,
                "before": before.every if before else 0,
                "state": _state(before),
            }
            self.stdout.write(TEXTS[action] % {"name": entry.name, **parameters})
        writes = (EntryAction.ADD, EntryAction.CHANGE, EntryAction.REMOVE)
        changes = sum(action in writes for action, _entry in actions)
        if not changes:
            self.stdout.write(_("Nothing to do."))
        elif options["install"]:
            self.stdout.write(_("%d written.") % changes)
        else:
            self.stdout.write(_("%d to write: add --install.") % changes)


def _state(entry: InstalledEntry | None) -> str:
    if entry is None:
        return ""
    if not entry.is_enabled:
        return _("switched off")
    return _("every %d s") % entry.every if entry.every else _("on another schedule")
