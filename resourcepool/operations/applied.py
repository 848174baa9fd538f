"""What an operation has changed, for interfaces to show."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from django.utils.text import capfirst

from resourcepool.exceptions import RowLocked
from resourcepool.labels import join_names
from resourcepool.translation import gettext


@dataclass(kw_only=True)
class Applied:
    """The result of an operation on some rows.

    Attributes:
        operation: the ``Operation``.
        found: the number of rows that it was to change.
        changed: the number of rows that it changed.
        deferred: how many of these change only when their lease ends.
        rows: the rows in parts that were changed, as they were before; empty unless they are logged.
        warnings: sentences about the result.
        errors: why rows were not changed. After an error other than RowLocked, the state of the others is unknown.
    """

    operation: Any
    found: int
    changed: int = 0
    deferred: int = 0
    rows: list[Any] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)

    @property
    def skipped(self) -> int:
        """The number of rows that were not changed."""
        return max(0, self.found - self.changed)

    @property
    def is_known(self) -> bool:
        """Whether the skipped rows are certainly unchanged."""
        return all(isinstance(error, RowLocked) for error in self.errors)

    @property
    def skipped_message(self) -> str:
        """The message about the skipped rows, if there was no error; "" if none was skipped."""
        return str(self.operation.skipped_message % {"count": self.skipped}) if self.skipped else ""

    def done_messages(self, model: Any, names: Sequence[str]) -> list[str]:
        """Return the messages about the changed rows of ``model``; ``names``: their names, or those of all rows."""
        done, later = self.operation.done_message, self.operation.deferred_message
        texts = []
        for text, count in ((done, self.changed - self.deferred), (later, self.deferred)):
            if count:
                what = described(model, count, names if self.found == 1 else ())
                texts.append(capfirst(str(text % {"count": count, "what": what, "names": join_names(names)})))
        return texts

    def or_raise(self, *, even_if_locked: bool = True) -> Self:
        """Return this result; raises its last error."""
        if self.errors and (even_if_locked or not self.is_known):
            raise self.errors[-1]
        return self


def described(model: Any, count: int, names: Sequence[object] = ()) -> str:
    """Return changed rows in words: "stream orders" if ``names`` has that name alone, otherwise "3 streams"."""
    words = model._meta
    if count == len(names) == 1:
        return f"{words.verbose_name} {names[0]}"
    noun = words.verbose_name if count == 1 else words.verbose_name_plural
    return gettext("%(count)s %(noun)s") % {"count": f"{count:,}", "noun": noun}
