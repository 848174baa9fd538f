"""Operations on resources: the confirmation page and the messages afterwards."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.http import HttpRequest
from django.utils.html import format_html

from resourcepool.admin.describe import key_and_name
from resourcepool.admin.operations_mixin import SHOWN, OperationsAdminMixin, Selection
from resourcepool.operations import OPERATIONS, Operation
from resourcepool.resources.queryset import ResourceQuerySet
from resourcepool.resources.state import state_of

MAX_GRANTS = 200  # listed one by one in the form
CHUNK = 500  # rows that a queryset changes in one transaction


@dataclass(frozen=True, kw_only=True)
class Grants(Selection):
    """The chosen resources.

    Attributes:
        grants: (primary key, fence) of each.
        held: how many of them are held.
    """

    model: Any
    grants: list[tuple[Any, int]]
    held: int

    @classmethod
    def of(cls, rows: Any, most: int) -> "Grants":
        """Read up to ``most`` of ``rows``, which are annotated with ``db_now``."""
        columns = rows.values_list("pk", "fence", "holder", "busy_before", "db_now")
        values = list(columns[: most + 1])
        grants = [(pk, fence) for pk, fence, *_ in values[:most]]
        return cls(
            model=rows.model,
            grants=grants,
            held=sum(1 for _, _, holder, busy_before, now in values[:most] if holder and busy_before > now),
            rows=list(rows[: min(SHOWN, most)]),
            count=len(grants),
            is_cut=len(values) > most,
        )

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

    def select_rows(self, rows: Any, operation: Operation) -> Grants:
        return Grants.of(rows, operation.max_rows)

    def confirmation_context(
        self, request: HttpRequest, chosen: Grants, operation: Operation
    ) -> dict[str, Any]:
        """See ``OperationsAdminMixin``; the form keeps the grants of its first page when it is shown again."""
        seen = request.POST.getlist("grant") or chosen.form_grants
        return super().confirmation_context(request, chosen, operation) | {"held": chosen.held, "seen": seen}

    def display_name(self, row: Any) -> str:
        return format_html("{} {} {}", key_and_name(row), self.state(row), row.holder)

    def parts(self, request: HttpRequest, chosen: Grants, operation: Operation) -> Iterable[Any]:
        return chosen.chunks(request.POST.getlist("grant") if operation.for_current_lease else [])

    def logged_values(self, entered: dict[str, Any]) -> str:
        return str(entered.get("reason", ""))

    def state(self, resource: Any) -> str:
        """Return the state of ``resource`` as a badge."""
        raise NotImplementedError
