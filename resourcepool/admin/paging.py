"""Pages of long tables: one look at the table finds what is counted and shown, and it ends at MOST rows."""

import math
from typing import Any

from django.core.paginator import Page
from django.utils.functional import cached_property

from resourcepool.admin.generic import ChangeList, Paginator
from resourcepool.admin.words import zone

MOST = 10_000


class Capped(int):
    """A count that ends at MOST and then says "10,000+"."""

    def __str__(self) -> str:
        return f"{MOST:,}+" if self > MOST else super().__str__()


class CappedPaginator(Paginator):
    """Pages over the first MOST rows; a search is carried out once, not once to count and once to show."""

    @cached_property
    def keys(self) -> list[Any]:
        """The primary keys of the rows that can be paged to, and one more if there are more."""
        rows: Any = self.object_list
        return list(rows.values_list("pk", flat=True)[: MOST + 1])

    @cached_property
    def count(self) -> int:
        return Capped(len(self.keys))

    @cached_property
    def num_pages(self) -> int:
        return max(1, math.ceil(min(self.count, MOST) / self.per_page))

    def page(self, number: Any) -> Any:
        """Return page ``number``; raises InvalidPage."""
        number = self.validate_number(number)
        last = min(number * self.per_page, MOST)
        rows: Any = self.object_list
        return Page(rows.filter(pk__in=self.keys[(number - 1) * self.per_page : last]), number, self)


class CappedList(ChangeList):
    """A list that never counts the whole table."""

    def get_results(self, request: Any) -> None:
        """Find the rows of this page."""
        super().get_results(request)
        self.search_help_text = " ".join(filter(None, (str(self.search_help_text or ""), zone())))
        if not self.multi_page:
            self.result_list = self.paginator.page(1).object_list
