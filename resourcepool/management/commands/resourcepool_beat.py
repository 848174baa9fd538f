"""``manage.py resourcepool_beat``: have django-celery-beat start the periodic jobs."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from resourcepool.exceptions import ResourcePoolError
from resourcepool.sweeps import schedule
from resourcepool.sweeps.schedule import Entry, Found, Step

WORDS = {
    Step.ADD: "+ {entry.name}: every {entry.every} s",
    Step.CHANGE: "~ {entry.name}: every {entry.every} s (was: {found.every} s)",
    Step.KEEP: "  {entry.name}: kept as you changed it ({state}; ours: every {entry.every} s)",
    Step.NOTHING: "  {entry.name}: every {entry.every} s",
}


class Command(BaseCommand):
    help = (
        "Shows which entries django-celery-beat needs to sweep, to check and to count; with --install, writes them."
        " What you have changed in the admin is kept. May be repeated. Example: manage.py resourcepool_beat --install"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--install", action="store_true", help="write them; without it, nothing is changed")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            found = schedule.found()
            steps = schedule.plan(schedule.wanted(), found)
            if options["install"]:
                schedule.install(steps)
        except ResourcePoolError as error:
            raise CommandError(str(error)) from error
        for step, entry in steps:
            self.stdout.write(_line(step, entry, found.get(entry.name)))
        self.stdout.write(_summary([step for step, _ in steps], installed=options["install"]))


def _line(step: Step, entry: Entry, found: Found | None) -> str:
    state = "" if found is None else _state(found)
    return WORDS[step].format(entry=entry, found=found, state=state)


def _state(found: Found) -> str:
    if not found.is_enabled:
        return "switched off"
    return f"every {found.every} s" if found.every else "on another schedule"


def _summary(steps: list[Step], *, installed: bool) -> str:
    changes = sum(step in (Step.ADD, Step.CHANGE) for step in steps)
    if not changes:
        return "Nothing to do."
    return f"{changes} written." if installed else f"{changes} to write: add --install."
