"""Document 000's protocol in miniature, with its holes: what ours is compared with."""

import datetime
from typing import Any

from tests.app.models import DocumentRow

DELTA = datetime.timedelta(minutes=2)
CLOSED = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)


class DocumentHolder:
    """One worker, with a clock of its own that may be wrong, and counts whole seconds."""

    def __init__(self, skew: datetime.timedelta = datetime.timedelta(0)) -> None:
        self._skew = skew
        self.row: Any = None

    def now(self) -> datetime.datetime:
        return (datetime.datetime.now(datetime.UTC) + self._skew).replace(microsecond=0)

    def search(self) -> Any:
        """Return the first free row; everybody looks in the same order."""
        return DocumentRow.objects.filter(busy_before__lt=self.now()).order_by("pk").first()

    def lock(self, row: Any) -> bool:
        """Take the row if its ``busy_before`` is still as it was read: that is the proof of ownership, too."""
        until = self.now() + DELTA
        changed = DocumentRow.objects.filter(pk=row.pk, busy_before=row.busy_before).update(busy_before=until)
        if changed and until == row.busy_before:
            changed = 0  # MySQL counts the rows that were changed, and this one was not
        if changed:
            row.busy_before, self.row = until, row
        return bool(changed)

    def acquire(self) -> bool:
        row = self.search()
        return row is not None and self.lock(row)

    def keep(self) -> bool:
        return self.lock(self.row)

    def close(self) -> None:
        self.row.busy_before = CLOSED
        self.row.save()

    def put_away(self) -> None:
        self.row.busy_before += datetime.timedelta(days=1)
        self.row.save()


def document_row(busy_before: datetime.datetime | None = CLOSED) -> Any:
    return DocumentRow.objects.create(busy_before=busy_before)


def is_free(row: Any) -> bool:
    row.refresh_from_db()
    return row.busy_before is not None and row.busy_before < datetime.datetime.now(datetime.UTC)


def let_pass(row: Any) -> None:
    """Let so much time pass that the row's holder has lost it."""
    DocumentRow.objects.filter(pk=row.pk).update(
        busy_before=datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=5)
    )
