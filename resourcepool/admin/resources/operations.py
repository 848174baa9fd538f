"""Operations on resources: the confirmation page and the messages afterwards."""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db import DatabaseError, InterfaceError
from django.db.models import Q
from django.http import HttpRequest
from django.utils.html import format_html

from resourcepool.admin.describe import key_and_name
from resourcepool.admin.operations_mixin import OperationsAdminMixin, no_answer
from resourcepool.events import localized
from resourcepool.exceptions import ResourcePoolError, RowLocked
from resourcepool.operations import OPERATIONS, Operation
from resourcepool.operations.check_now import Unfinished
from resourcepool.operations.operation import described
from resourcepool.resources.queryset import ResourceQuerySet
from resourcepool.resources.state import state_of
from resourcepool.translation import gettext_lazy, ngettext_lazy

MAX_GRANTS = 200  # listed one by one in the form
SHOWN = 20  # rows listed on the confirmation page
CHUNK = 500  # rows that a queryset changes in one transaction
_LOCKED = gettext_lazy("%(count)d unchanged.")
_UNKNOWN = ngettext_lazy(
    "%(count)d not changed, or unknown; the list shows its state.",
    "%(count)d not changed, or unknown; the list shows their states.",
    "count",
)


@dataclass(frozen=True)
class Selection:
    """The selected rows, up to a limit.

    Attributes:
        grants: (primary key, fence) of each.
        held: how many of them are held.
        shown: the first of them, for the confirmation page.
        is_cut: whether more were selected.
    """

    model: Any
    grants: list[tuple[Any, int]]
    held: int
    shown: list[Any]
    is_cut: bool

    @classmethod
    def of(cls, rows: Any, most: int) -> "Selection":
        """Read up to ``most`` of ``rows``, which are annotated with ``db_now``."""
        columns = rows.values_list("pk", "fence", "holder", "busy_before", "db_now")
        values = list(columns[: most + 1])
        held = sum(1 for _, _, holder, busy_before, now in values[:most] if holder and busy_before > now)
        grants = [(pk, fence) for pk, fence, *_ in values[:most]]
        return cls(rows.model, grants, held, list(rows[: min(SHOWN, most)]), len(values) > most)

    @property
    def form_grants(self) -> list[str]:
        """The grants as "pk:fence", so that the form cannot hit a later lease; empty if there are too many."""
        return [f"{pk}:{fence}" for pk, fence in self.grants] if len(self.grants) <= MAX_GRANTS else []

    def chunks(self, seen: Iterable[str] = ()) -> Iterator[Any]:
        """Yield querysets over the rows; with ``seen`` ("pk:fence"), only over rows that still have that fence."""
        rows = ResourceQuerySet(model=self.model, using=self.model.pool.using)
        if grants := set(seen):
            conditions = [Q(pk=pk, fence=fence) for pk, fence in self.grants if f"{pk}:{fence}" in grants]
            for start in range(0, len(conditions), MAX_GRANTS):
                yield rows.filter(Q(*conditions[start : start + MAX_GRANTS], _connector=Q.OR))
            return
        pks = [pk for pk, _ in self.grants]
        for start in range(0, len(pks), CHUNK):
            yield rows.filter(pk__in=pks[start : start + CHUNK])


class ResourceOperationsMixin(OperationsAdminMixin):
    """Runs operations on resources, for users with ``operate_<model>`` who may also view the list."""

    operations = OPERATIONS

    def can_offer(self, operation: Operation, row: Any) -> bool:
        return state_of(row, row.db_now) in operation.states and operation.is_offered(row)

    def select_rows(self, rows: Any, operation: Operation) -> Selection:
        return Selection.of(rows, operation.max_rows)

    def confirmation_context(
        self, request: HttpRequest, chosen: Selection, operation: Operation
    ) -> dict[str, Any]:
        """See ``OperationsAdminMixin``; the form keeps the grants of its first page when it is shown again."""
        return {
            "count": len(chosen.grants),
            "held": chosen.held,
            "most": operation.max_rows if chosen.is_cut else 0,
            "listed": [
                format_html("{} {} {}", key_and_name(row), self.state(row), row.holder) for row in chosen.shown
            ],
            "more": len(chosen.grants) - len(chosen.shown),
            "seen": request.POST.getlist("grant") or chosen.form_grants,
        }

    def perform(self, request: HttpRequest, chosen: Any, operation: Operation, entered: dict[str, Any]) -> None:
        seen = request.POST.getlist("grant") if operation.for_current_lease else []
        done, held, actor, error = 0, 0, request.user.get_username(), None
        for rows in chosen.chunks(seen):
            affected, changed, error = _attempt(operation, rows, entered, actor)
            if changed:
                held += min(changed, _held(operation, rows))
                self.log(request, affected, operation, entered.get("reason"))
            done += changed
            if error:
                self.message_user(request, localized(error), messages.ERROR)
            if error and not isinstance(error, RowLocked):
                break
        names = [] if len(chosen.grants) > 1 else list(map(str, chosen.shown))
        for message, count in ((operation.done, done - held), (operation.deferred, held)):
            if count:
                text = message(count, described(self.model, count, names))
                self.message_user(request, text, messages.SUCCESS)
        skipped_text = operation.skipped_message
        if error:
            skipped_text = _LOCKED if isinstance(error, RowLocked) else _UNKNOWN
        if (skipped := len(chosen.grants) - done) > 0:
            self.message_user(request, skipped_text % {"count": skipped}, messages.WARNING)

    def state(self, resource: Any) -> str:
        """Return the state of ``resource`` as a badge."""
        raise NotImplementedError


def _attempt(
    operation: Operation, rows: Any, entered: dict[str, Any], actor: str
) -> tuple[list[Any], int, ResourcePoolError | None]:
    """Run it; return the affected rows, the number changed, and the error."""
    affected: list[Any] = []
    try:
        targets = operation.applicable(rows)
        affected = list(targets)
        return affected, operation.do(targets, actor=actor, **entered), None
    except (Unfinished, RowLocked) as error:
        return affected, error.done, error
    except ResourcePoolError as error:
        return affected, 0, error
    except (DatabaseError, InterfaceError) as error:
        return affected, 0, no_answer(rows.db, error)


def _held(operation: Operation, rows: Any) -> int:
    """Return how many of the changed ``rows`` change only when their lease ends."""
    if operation.deferred_message is None:
        return 0
    with contextlib.suppress(
        DatabaseError, InterfaceError
    ):  # the operation succeeded, whatever this count does
        return int(rows.draining().filter(status=operation.status).count())
    return 0
