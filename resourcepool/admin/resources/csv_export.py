"""Export the list as CSV: streamed, without secrets, safe to open in a spreadsheet."""

import csv
from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, StreamingHttpResponse

from resourcepool.status.export.cells import escape_formulas
from resourcepool.status.export.records import resource_columns, resource_records
from resourcepool.translation import gettext_lazy as _


class _Echo:
    """A file for ``csv.writer`` that returns each line instead of storing it."""

    def write(self, text: str) -> str:
        return text


@admin.action(description=_("Export as CSV (without passwords)"), permissions=["view"])
def export(page: Any, request: HttpRequest, rows: Any) -> StreamingHttpResponse:
    response = StreamingHttpResponse(_lines(rows), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{page.opts.model_name}.csv"'
    return response


def _lines(rows: Any) -> Iterator[str]:
    write, names = csv.writer(_Echo()).writerow, resource_columns(rows.model, to_import=False)
    yield write(names)
    for record in resource_records(rows):
        yield write([escape_formulas(record[name]) for name in names])
