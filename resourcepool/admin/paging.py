"""Pages of long tables: one query finds the keys that are counted and shown, at most ``MAX_ROWS``."""

import datetime
import math
from typing import TYPE_CHECKING, Any

from django.contrib.admin.views.main import ChangeList as DjangoChangeList
from django.core.paginator import Page, Paginator as DjangoPaginator
from django.http import HttpRequest
from django.utils.dateparse import parse_datetime
from django.utils.functional import cached_property

from resourcepool.db.dialect import aware
from resourcepool.status.times import time_zone_note

MAX_ROWS = 10_000
MAX_COUNTED = 2_000  # rows of a table whose filters show counts
NUL = "\0"  # refused by PostgreSQL
MAX_PARAM_LENGTH = 500  # longer searches exceed the expression depth of SQLite
YEARS = range(1_001, 9_999)  # that every database supports, in every time zone


def parse_param(text: str) -> datetime.datetime | None:
    """Return the date and time in ``text``, in the current time zone unless it names one; None: invalid."""
    try:
        # An unquoted plus sign of a time zone arrives as a space.
        parsed = parse_datetime(text) or parse_datetime(text.replace(" ", "+"))
    except ValueError:
        return None
    return aware(parsed) if parsed is not None and parsed.year in YEARS else None


if TYPE_CHECKING:
    Paginator = DjangoPaginator[Any]
else:
    Paginator = DjangoPaginator


class CappedCount(int):
    """A count that is shown as "10,000+" above ``MAX_ROWS``."""

    def __str__(self) -> str:
        return f"{MAX_ROWS:,}+" if self > MAX_ROWS else super().__str__()


class CappedPaginator(Paginator):
    """Pages over the first ``MAX_ROWS`` rows; a search runs once, not once to count and once to show."""

    @cached_property
    def keys(self) -> list[Any]:
        """The primary keys of the first ``MAX_ROWS`` rows, and one more if there are more."""
        rows: Any = self.object_list
        return list(rows.values_list("pk", flat=True)[: MAX_ROWS + 1])

    @cached_property
    def count(self) -> int:
        return CappedCount(len(self.keys))

    @cached_property
    def num_pages(self) -> int:
        return max(1, math.ceil(min(self.count, MAX_ROWS) / self.per_page))

    def page(self, number: Any) -> Any:
        number = self.validate_number(number)
        last = min(number * self.per_page, MAX_ROWS)
        rows: Any = self.object_list
        return Page(rows.filter(pk__in=self.keys[(number - 1) * self.per_page : last]), number, self)


class CappedList(DjangoChangeList):
    """A list that never counts the whole table, and is empty for parameters that no row can match."""

    def get_queryset(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        rows = super().get_queryset(request, *args, **kwargs)
        values = (text for texts in request.GET.lists() for text in texts[1])
        return rows.none() if any(NUL in text or len(text) > MAX_PARAM_LENGTH for text in values) else rows

    def get_results(self, request: Any) -> None:
        super().get_results(request)
        page: Any = self.model_admin
        if page.counts_unasked and not self.add_facets:
            first = self.root_queryset.order_by().values_list("pk", flat=True)[: MAX_COUNTED + 1]
            self.add_facets = len(first) <= MAX_COUNTED
        self.search_help_text = " ".join(filter(None, (str(self.search_help_text or ""), time_zone_note())))
        if not self.multi_page:
            self.result_list = self.paginator.page(1).object_list
        self.model_admin.load_column_values(self.result_list)  # type: ignore[attr-defined]
