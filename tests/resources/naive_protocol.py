"""The naive protocol of the article that this project began with (docs/internals/origins.md), to show its faults.

A row is busy while its ``busy_before`` is ahead of the caller's own clock, in whole seconds. An UPDATE that compares
``busy_before`` claims and renews it; saving the caller's copy of the row releases and quarantines it.
"""

import datetime
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection, models

DELTA = datetime.timedelta(minutes=2)
FREED = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)


class Row(models.Model):
    """The table of the article."""

    name = models.CharField(max_length=50)
    busy_before = models.DateTimeField(null=True)

    class Meta:
        app_label = "testapp"
        db_table = "document_000"
        managed = False

    def __str__(self) -> str:
        return self.name


@pytest.fixture
def documents_table(transactional_db: None) -> Iterator[None]:
    with connection.schema_editor() as editor:
        editor.create_model(Row)
    yield
    with connection.schema_editor() as editor:
        editor.delete_model(Row)


class Clock:
    """The clock of one host, in whole seconds; ``moved``: its error."""

    def __init__(self) -> None:
        self.moved = datetime.timedelta()
        self._stopped_at = datetime.datetime.now(datetime.UTC).replace(microsecond=0)

    def now(self) -> datetime.datetime:
        return self._stopped_at + self.moved


class Holder:
    """One process that follows the article."""

    def __init__(self, clock: Clock | None = None, *, is_valid: Callable[[], bool] = lambda: True) -> None:
        self.clock = clock or Clock()
        self.is_valid = is_valid
        self.row: Any = None

    def search(self) -> Row | None:
        """Its search statement: the first row with busy_before < now."""
        return Row.objects.filter(busy_before__lt=self.clock.now()).order_by("pk").first()

    def lock(self, row: Any) -> bool:
        """Its lock statement: set busy_before if it is unchanged; the row count is the answer."""
        until = self.clock.now() + DELTA
        won = Row.objects.filter(pk=row.pk, busy_before=row.busy_before).update(busy_before=until) == 1
        row.busy_before = until
        return won

    def acquire(self) -> bool:
        row = self.search()
        if row is None or not self.lock(row):
            return False
        self.row = row
        if not self.is_valid():
            self.put_away()
        return True

    def keep(self) -> bool:
        return self.lock(self.row)

    def turn(self) -> None:
        """One round of its thread: renew, or else acquire another row."""
        if not self.keep():
            self.acquire()

    def put_away(self) -> None:
        self.row.busy_before += datetime.timedelta(days=1)
        self.row.save()

    def close(self) -> None:
        self.row.busy_before = FREED
        self.row.save()

    @property
    def believes_to_hold(self) -> bool:
        return self.row is not None and self.row.busy_before > self.clock.now()


def free_row(name: str = "row") -> Row:
    return Row.objects.create(name=name, busy_before=FREED)


def busy_before(row: Any) -> Any:
    return Row.objects.values_list("busy_before", flat=True).get(pk=row.pk)
