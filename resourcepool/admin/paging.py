"""Pages of long tables: one look at the table finds what is counted and shown, and it ends at MOST rows."""

import math
from typing import TYPE_CHECKING, Any

from django.contrib.admin.views.main import ChangeList as DjangoChangeList
from django.core.paginator import Page
from django.core.paginator import Paginator as DjangoPaginator
from django.db import connections
from django.http import HttpRequest
from django.utils.functional import cached_property

from resourcepool.admin.columns import zone
from resourcepool.admin.datetime_lookups import compares_moments, moment_of
from resourcepool.dialect import in_columns

if TYPE_CHECKING:
    Paginator = DjangoPaginator[Any]
else:
    Paginator = DjangoPaginator

MOST = 10_000
NUL = "\0"  # which PostgreSQL refuses
LONGEST = 500  # letters of one parameter of a list; SQLite compares no more words at once


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
        number = self.validate_number(number)
        last = min(number * self.per_page, MOST)
        rows: Any = self.object_list
        return Page(rows.filter(pk__in=self.keys[(number - 1) * self.per_page : last]), number, self)


class CappedList(DjangoChangeList):
    """A list that never counts the whole table, and finds nothing for what no row can have."""

    def get_queryset(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        rows = super().get_queryset(request, *args, **kwargs)
        asked = (text for texts in request.GET.lists() for text in texts[1])
        return rows.none() if any(NUL in text or len(text) > LONGEST for text in asked) else rows

    def get_filters_params(self, params: Any = None) -> Any:
        """Return what the list is filtered by; moments as the columns have them."""
        found: Any = super().get_filters_params(params)
        return {lookup: [self._stored(lookup, text) for text in texts] for lookup, texts in found.items()}

    def _stored(self, lookup: str, text: str) -> str:
        moment = moment_of(text) if compares_moments(self.model, lookup) else None
        return text if moment is None else in_columns(moment, connections[self.root_queryset.db]).isoformat()

    def get_results(self, request: Any) -> None:
        super().get_results(request)
        self.search_help_text = " ".join(filter(None, (str(self.search_help_text or ""), zone())))
        if not self.multi_page:
            self.result_list = self.paginator.page(1).object_list
        self.model_admin.load_column_values(self.result_list)  # type: ignore[attr-defined]
