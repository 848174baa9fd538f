"""One act of an operator, declared once for all surfaces."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from resourcepool.operations.fields import Field
from resourcepool.resources.state import State, Status

SKIPPED = _("%(count)d skipped.")
MAX_ROWS = 10_000  # the history could not follow more


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One kind of change.

    Attributes:
        name: in URLs, admin actions and commands; ``button``: its label; ``title``: the label with what it means.
        effect: what it does to running leases, for an operator who has never used it.
        permission: the permission of the model that it needs.
        fields: what it asks for.
        concerned: narrows rows to those that it would change.
        by_filter: the same for rows that a filter chose instead of the operator; None: as ``concerned``.
        do: makes the change, given rows, ``actor`` and the values of the fields by name; returns how many it changed.
        done, otherwise: what is said of the changed rows and of the others, with ``count``; may be plural.
        states: the states in which the page of a resource offers it; empty: no page does.
        later: what is said of changed rows whose lease still runs, if it waits for the end of the lease.
        status: the status of these rows.
        is_for: whether resources of this model support it.
        is_offered: whether the page of a resource in one of ``states`` offers it.
        of_a_grant: it concerns the lease that the operator saw, not a later one of the same resource.
        most: how many rows a page changes at once; more would block the web server for too long.
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

    def targets(self, rows: Any, *, by_id: bool) -> Any:
        """Return those of ``rows`` to which it is done; ``by_id``: the operator chose each of them."""
        return (self.applicable if by_id else self.bulk_targets or self.applicable)(rows)


def by_name(*operations: Operation) -> dict[str, Operation]:
    """Return these operations by their names."""
    return {operation.name: operation for operation in operations}
