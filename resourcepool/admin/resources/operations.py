"""Doing things to resources: what is shown of those that are chosen, and what is said of them afterwards."""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db import DatabaseError, InterfaceError
from django.db.models import Q
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import ngettext_lazy

from resourcepool.admin.describe import named
from resourcepool.admin.operations_mixin import OperationsAdminMixin, unanswered
from resourcepool.events import localized
from resourcepool.exceptions import ResourcePoolError, RowLocked
from resourcepool.operations import OPERATIONS, Operation
from resourcepool.operations.check_now import Unfinished
from resourcepool.resources.queryset import ResourceQuerySet
from resourcepool.resources.state import state_of

NAMED = 200  # grants that are named one by one
SHOWN = 20
CHUNK = 500  # as many as a queryset changes at once: all of them or none
_LOCKED = ngettext_lazy("%(count)d was left as it is.", "%(count)d were left as they are.", "count")
_UNKNOWN = ngettext_lazy(
    "%(count)d not done, or not known to be; the list shows how it stands.",
    "%(count)d not done, or not known to be; the list shows how they stand.",
    "count",
)


@dataclass(frozen=True)
class Selection:
    """The chosen rows, up to a limit.

    Attributes:
        grants: (primary key, fence) of each.
        held: how many of them are held.
        shown: the first of them, to be listed.
        is_cut: whether more were chosen.
    """

    model: Any
    grants: list[tuple[Any, int]]
    held: int
    shown: list[Any]
    is_cut: bool

    @classmethod
    def of(cls, rows: Any, most: int) -> "Selection":
        """Read up to ``most`` of the chosen ``rows``, which are annotated with ``db_now``."""
        columns = rows.values_list("pk", "fence", "holder", "busy_before", "db_now")
        found = list(columns[: most + 1])
        held = sum(1 for _, _, holder, busy_before, now in found[:most] if holder and busy_before > now)
        grants = [(pk, fence) for pk, fence, *_ in found[:most]]
        return cls(rows.model, grants, held, list(rows[: min(SHOWN, most)]), len(found) > most)

    @property
    def named(self) -> list[str]:
        """The grants for the form, if they are few: what is done is then done to no later one."""
        return [f"{pk}:{fence}" for pk, fence in self.grants] if len(self.grants) <= NAMED else []

    def chunks(self, seen: Iterable[str] = ()) -> Iterator[Any]:
        """Yield querysets over the chosen rows; with ``seen``, only over those that still have the fence of then."""
        rows = ResourceQuerySet(model=self.model, using=self.model.pool.using)
        if only := set(seen):
            same = [Q(pk=pk, fence=fence) for pk, fence in self.grants if f"{pk}:{fence}" in only]
            for start in range(0, len(same), NAMED):
                yield rows.filter(Q(*same[start : start + NAMED], _connector=Q.OR))
            return
        pks = [pk for pk, _ in self.grants]
        for start in range(0, len(pks), CHUNK):
            yield rows.filter(pk__in=pks[start : start + CHUNK])


class ResourceOperationsMixin(OperationsAdminMixin):
    """For those with the permission ``operate_<model>``, who may also see the list."""

    operations = OPERATIONS

    def can_offer(self, operation: Operation, row: Any) -> bool:
        return state_of(row, row.db_now) in operation.states and operation.is_offered(row)

    def select_rows(self, rows: Any, operation: Operation) -> Selection:
        return Selection.of(rows, operation.max_rows)

    def confirmation_context(
        self, request: HttpRequest, chosen: Selection, operation: Operation
    ) -> dict[str, Any]:
        """See ``OperationsAdminMixin``; what was seen at first is still known when it is asked again."""
        return {
            "count": len(chosen.grants),
            "held": chosen.held,
            "most": operation.max_rows if chosen.is_cut else 0,
            "listed": [
                format_html("{} {} {}", named(row), self.state(row), row.holder) for row in chosen.shown
            ],
            "more": len(chosen.grants) - len(chosen.shown),
            "seen": request.POST.getlist("grant") or chosen.named,
        }

    def perform(self, request: HttpRequest, chosen: Any, operation: Operation, entered: dict[str, Any]) -> None:
        seen = request.POST.getlist("grant") if operation.for_current_lease else []
        done, held, actor, trouble = 0, 0, request.user.get_username(), None
        for rows in chosen.chunks(seen):
            concerned, changed, trouble = _attempt(operation, rows, entered, actor)
            if changed:
                held += min(changed, _held(operation, rows))
                self.log(request, concerned, operation, entered.get("reason"))
            done += changed
            if trouble:
                self.message_user(request, localized(trouble), messages.ERROR)
            if trouble and not isinstance(trouble, RowLocked):
                break
        self._say(request, operation.done_message, done - held, messages.SUCCESS)
        self._say(request, operation.deferred_message, held, messages.SUCCESS)
        rest = operation.skipped_message
        if trouble:
            rest = _LOCKED if isinstance(trouble, RowLocked) else _UNKNOWN
        self._say(request, rest, len(chosen.grants) - done, messages.WARNING)

    def _say(self, request: HttpRequest, text: Any, count: int, level: int) -> None:
        if count > 0:
            self.message_user(request, text % {"count": count}, level)

    def state(self, resource: Any) -> str:
        raise NotImplementedError


def _attempt(
    operation: Operation, rows: Any, entered: dict[str, Any], actor: str
) -> tuple[list[Any], int, ResourcePoolError | None]:
    """Run it; return the rows concerned, the number changed, and the error."""
    concerned: list[Any] = []
    try:
        those = operation.applicable(rows)
        concerned = list(those)
        return concerned, operation.do(those, actor=actor, **entered), None
    except (Unfinished, RowLocked) as error:
        return concerned, error.done, error
    except ResourcePoolError as error:
        return concerned, 0, error
    except (DatabaseError, InterfaceError) as error:
        return concerned, 0, unanswered(rows.db, error)


def _held(operation: Operation, rows: Any) -> int:
    """Return how many of the changed ``rows`` it affects only when their lease ends."""
    if operation.deferred_message is None:
        return 0
    with contextlib.suppress(DatabaseError, InterfaceError):  # it is done: no reason to say that it is not
        return int(rows.draining().filter(status=operation.status).count())
    return 0
