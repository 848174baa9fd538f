"""An operation, declared once for the admin, the commands and the REST API."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.text import capfirst

from resourcepool.operations.fields import Field
from resourcepool.resources.state import State, Status
from resourcepool.translation import gettext
from resourcepool.translation import gettext_lazy as _

SKIPPED = _("%(count)d skipped.")
MAX_ROWS = 10_000  # more events at once would overflow the history


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One kind of change.

    Attributes:
        name: its name in URLs, admin actions and commands.
        button, title: its label, and the label with a short explanation.
        effect: its effect on running leases, for an operator who has never used it.
        permission: the required permission of the model.
        fields: the input fields.
        applicable: narrows rows to those that it would change.
        bulk_targets: the same for rows selected by a filter instead of one by one; None: as ``applicable``.
        do: makes the change, given rows, ``actor`` and the values of the fields by name; returns the number of changed
            rows.
        done_message, skipped_message: messages about the changed rows, with ``count`` and ``what`` (see ``described``),
            and about the others, with ``count``; may be plural.
        deferred_message: the message about changed rows whose lease still runs; None: the operation does not wait for
            the end of leases.
        status: the status of these rows.
        states: the states in which the page of a resource offers it; empty: no page does.
        is_for: whether a model supports it.
        is_offered: whether the page of a resource in one of ``states`` offers it.
        for_current_lease: it affects only the lease that the operator saw, not a later one of the same resource.
        max_rows: the maximum number of rows that a page changes at once; more would block the web server for too long.
    """

    name: str
    button: Any
    title: Any
    effect: Any
    permission: str = "operate"
    fields: tuple[Field, ...] = ()
    applicable: Callable[[Any], Any] = lambda rows: rows
    bulk_targets: Callable[[Any], Any] | None = None
    do: Callable[..., Any]
    done_message: Any
    skipped_message: Any = SKIPPED
    deferred_message: Any = None
    status: Status | None = None
    states: Collection[State] = tuple(State)
    is_for: Callable[[Any], bool] = lambda model: True
    is_offered: Callable[[Any], bool] = lambda resource: True
    for_current_lease: bool = False
    max_rows: int = MAX_ROWS

    def done(self, count: int, what: str) -> str:
        """Return the message about ``count`` changed rows, which are ``what`` in words."""
        return capfirst(str(self.done_message % {"count": count, "what": what}))

    def deferred(self, count: int, what: str) -> str:
        """Return the message about ``count`` changed rows whose lease still runs."""
        return capfirst(str(self.deferred_message % {"count": count, "what": what}))

    def targets(self, rows: Any, *, by_id: bool) -> Any:
        """Return the rows to change; ``by_id``: the operator selected them one by one."""
        return (self.applicable if by_id else self.bulk_targets or self.applicable)(rows)


def described(model: Any, count: int, names: Sequence[object] = ()) -> str:
    """Return changed rows in words: "stream orders" if ``names`` has that name alone, otherwise "3 streams"."""
    words = model._meta
    if count == len(names) == 1:
        return f"{words.verbose_name} {names[0]}"
    noun = words.verbose_name if count == 1 else words.verbose_name_plural
    return gettext("%(count)s %(noun)s") % {"count": f"{count:,}", "noun": noun}


def by_name(*operations: Operation) -> dict[str, Operation]:
    """Return these operations by name."""
    return {operation.name: operation for operation in operations}
