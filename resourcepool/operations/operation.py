"""One act of an operator, declared once for all surfaces."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from resourcepool.operations.fields import Field
from resourcepool.resources.state import State, Status

AT_ONCE = 10_000  # the history could not follow more


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One kind of change.

    Attributes:
        name: in addresses, as an action of a list and in commands; ``button``: for people; ``title``: the same with
            what it means.
        effect: what it does to leases, for somebody who has never done it.
        permission: who may: those with the permission of this name for the model.
        fields: what is asked.
        concerned: narrows rows to those it changes something about.
        by_filter: the same, where rows are named by a filter instead of one by one; None: as ``concerned``.
        do: makes the change (those rows, ``actor`` and what was entered by name); returns how many were changed.
        done, otherwise: what is said of those it was done to and of the others; plural, with ``count``.
        states: in which the page of a resource offers it: elsewhere it would change nothing; none: no page does.
        later: what is said of those among them whose lease still runs, because it waits for the end of that; None: it
            does not.
        status: in which those are then.
        is_for: whether it can be done to resources of this model at all.
        is_offered: whether its page offers it of a resource in one of these states.
        of_a_grant: concerns the lease that was seen, not whoever has the resource by now.
        most: to how many a page does it at once; more would keep the web server busy for too long.
    """

    name: str
    button: Any
    title: Any
    effect: Any
    permission: str = "operate"
    fields: tuple[Field, ...] = ()
    concerned: Callable[[Any], Any] = lambda rows: rows
    by_filter: Callable[[Any], Any] | None = None
    do: Callable[..., Any]
    done: Any
    otherwise: Any = None
    later: Any = None
    status: Status | None = None
    states: Collection[State] = tuple(State)
    is_for: Callable[[Any], bool] = lambda model: True
    is_offered: Callable[[Any], bool] = lambda resource: True
    of_a_grant: bool = False
    most: int = AT_ONCE


def by_name(*operations: Operation) -> dict[str, Operation]:
    """Return these operations by their names."""
    return {operation.name: operation for operation in operations}
