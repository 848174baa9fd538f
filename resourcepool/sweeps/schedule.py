"""The schedule of the Celery tasks, and its installation in the tables of django-celery-beat."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.apps import apps
from django.db import connections, router, transaction

from resourcepool.db.retry import retrying
from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption, Hidden
from resourcepool.health_checks.checker import check_intervals
from resourcepool.translation import gettext_noop as _

MINUTE = 60  # seconds
NOTE = "By resourcepool_beat --install, every {every} s. Your changes here are kept."


@dataclass(frozen=True, slots=True)
class Entry:
    """A task that starts every ``every`` seconds."""

    name: str
    task: str
    every: int
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InstalledEntry:
    """An existing entry: its interval in seconds (0: another kind of schedule), and its description."""

    every: int
    is_enabled: bool
    note: str


class EntryAction(StrEnum):
    """The change to an entry."""

    ADD = "add"
    CHANGE = "change"
    KEEP = "keep"  # changed by an operator
    NOTHING = "nothing"
    REMOVE = "remove"  # the settings no longer have its check


def desired_entries() -> list[Entry]:
    """Return the entries that should exist: sweep, statistics, pruning, and the health check of each pool."""
    return [
        Entry("resourcepool: sweep", "resourcepool.sweep", MINUTE),
        Entry("resourcepool: statistics", "resourcepool.refresh_statistics", MINUTE),
        Entry("resourcepool: prune history", "resourcepool.prune_history", 10 * MINUTE),
        *(
            Entry(f"resourcepool: check {label}", "resourcepool.check_health", every, (label,))
            for label, every in sorted(check_intervals().items())
        ),
    ]


def plan(entries: Sequence[Entry], found: Mapping[str, InstalledEntry]) -> list[tuple[EntryAction, Entry]]:
    """Decide the change to each entry. Entries that an operator changed or created are kept."""
    actions = [(_action(entry, found.get(entry.name)), entry) for entry in entries]
    others = sorted(found.keys() - {entry.name for entry in entries})
    return actions + [
        (EntryAction.REMOVE, Entry(name, "", found[name].every)) for name in others if _is_ours(found[name])
    ]


def _action(entry: Entry, found: InstalledEntry | None) -> EntryAction:
    if found is None:
        return EntryAction.ADD
    if found.every == entry.every and found.is_enabled:
        return EntryAction.NOTHING
    return EntryAction.CHANGE if _is_ours(found) else EntryAction.KEEP


def _is_ours(found: InstalledEntry) -> bool:
    return found.is_enabled and found.note == NOTE.format(every=found.every)


def installed_entries() -> dict[str, InstalledEntry]:
    """Return the entries of this package in django-celery-beat.

    Raises:
        BadOption: django-celery-beat is not installed.
        DatabaseUnavailable, NotMigrated: the entries could not be read.
    """
    ours = _rows("PeriodicTask").filter(name__startswith="resourcepool: ").select_related("interval")
    tasks = retrying(connections[ours.db], lambda: list(ours.all()))
    return {
        task.name: InstalledEntry(
            int(task.interval.schedule.run_every.total_seconds()) if task.interval else 0,
            task.enabled,
            task.description,
        )
        for task in tasks
    }


def install(actions: Sequence[tuple[EntryAction, Entry]]) -> None:
    """Apply all actions of ``plan``, or none."""
    tasks = _rows("PeriodicTask")
    with transaction.atomic(using=tasks.db):
        for action, entry in actions:
            if action in (EntryAction.ADD, EntryAction.CHANGE):
                _write(entry)
            elif action is EntryAction.REMOVE:
                tasks.filter(name=entry.name).delete()


def _write(entry: Entry) -> None:
    rows, same = _rows("IntervalSchedule"), {"every": entry.every, "period": "seconds"}
    # Not get_or_create(), which fails on duplicate intervals: the table has no unique constraint.
    interval = rows.filter(**same).first() or rows.create(**same)
    _rows("PeriodicTask").update_or_create(
        name=entry.name,
        defaults={
            "task": entry.task,
            "interval": interval,
            "args": json.dumps(list(entry.arguments)),
            "description": NOTE.format(every=entry.every),  # lets a later run detect changes
            "expire_seconds": entry.every,  # otherwise tasks accumulate while no worker runs
        },
    )


def _rows(name: str) -> Any:
    """Return the rows of a model of django-celery-beat on the database they are written to: a replica may lag."""
    if not apps.is_installed("django_celery_beat"):
        add = _(
            "django_celery_beat is missing; run `pip install django-celery-beat`, add it, and run `manage.py migrate`"
        )
        raise BadOption("INSTALLED_APPS", Hidden(), because=Sentence(add))
    model: Any = apps.get_model("django_celery_beat", name)
    return model.objects.using(router.db_for_write(model))
