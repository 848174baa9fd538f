"""Announcements, each read once: all that the surfaces need to know about them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.db import models

from resourcepool.operations import Operation
from resourcepool.status.alarm import Alarm, AlarmKind, Thresholds
from resourcepool.status.registry import register
from resourcepool.status.status_reader import ReasonsMixin, StatusReader
from resourcepool.status.system import NamedSystem, Panel, gauge, text


class Announcement(models.Model):
    name = models.CharField(max_length=100, primary_key=True)
    reader = models.CharField(max_length=100, blank=True)

    class Meta:
        default_permissions = ("add", "change", "delete", "view", "operate")

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class AnnouncementStatus(ReasonsMixin):
    """``reader``: who has read it; "": nobody."""

    name: str
    reader: str

    def reasons(self) -> Iterator[str]:
        if not self.reader:
            yield "not read yet"


def alarms(statuses: Iterable[AnnouncementStatus], limits: Thresholds) -> Iterator[Alarm]:
    unread = (one for one in statuses if not one.reader)
    yield from (Alarm(AlarmKind.LAGGING, f"announcement: {one.name}", "nobody has read it.") for one in unread)


READ = Operation(
    name="read",
    button="Read",
    title="Read",
    effect="Nobody else needs to read it.",
    applicable=lambda rows: rows.filter(reader=""),
    do=lambda rows, actor: rows.update(reader=actor),
    done_message="%(what)s was read.",
    skipped_message="%(count)d already read.",
)

register(
    NamedSystem(
        reader=StatusReader(
            Announcement,
            annotate=lambda rows: rows,
            read=lambda connection, rows: [AnnouncementStatus(row.name, row.reader) for row in rows],
            filters={"unread": lambda rows: rows.filter(reader="")},
        ),
        figures=(
            text("announcement", "name"),
            text("reader", "reader"),
            gauge("read", "Whether it was read.", lambda one: bool(one.reader)),
        ),
        none_yet="No announcements yet.",
        operations=(READ,),
        alarms=alarms,
        subject="announcement: %s",
        panel=Panel("Announcements", "each read once", order=80),
    )
)
