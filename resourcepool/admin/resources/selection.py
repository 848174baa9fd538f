"""The resources that an operator has chosen, as they stood when they were shown."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from resourcepool.resources.queryset import ResourceQuerySet

NAMED = 200  # grants that are named one by one
SHOWN = 20
CHUNK = 500  # as many as a queryset changes at once: all of them or none


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
        chosen = found[:most]
        held = sum(1 for _, _, holder, busy_before, now in chosen if holder and busy_before > now)
        grants = [(pk, fence) for pk, fence, *_ in chosen]
        return cls(rows.model, grants, held, list(rows[: min(SHOWN, most)]), len(found) > most)

    @property
    def named(self) -> list[str]:
        """The grants for the form, if they are few: what is done is then done to no later one."""
        return [f"{pk}:{fence}" for pk, fence in self.grants] if len(self.grants) <= NAMED else []

    @property
    def more(self) -> int:
        """How many are chosen and not shown."""
        return len(self.grants) - len(self.shown)

    def chunks(self, seen: Iterable[str] = ()) -> Iterator[Any]:
        """Yield querysets over the chosen rows; with ``seen``, only over those that still have the fence of then."""
        rows = ResourceQuerySet(model=self.model, using=self.model.pool.using)
        only = set(seen)
        if only:
            same = [grant for grant in self.grants if f"{grant[0]}:{grant[1]}" in only]
            for start in range(0, len(same), NAMED):
                one_of = Q()
                for pk, fence in same[start : start + NAMED]:
                    one_of |= Q(pk=pk, fence=fence)
                yield rows.filter(one_of)
            return
        pks = [pk for pk, _ in self.grants]
        for start in range(0, len(pks), CHUNK):
            yield rows.filter(pk__in=pks[start : start + CHUNK])
