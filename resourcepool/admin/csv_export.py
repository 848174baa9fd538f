"""Downloads of records as CSV: streamed, and safe to open in a spreadsheet; resources without secrets."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, StreamingHttpResponse

from resourcepool.status.export import csv_lines, escape_formulas, resource_columns, resource_records
from resourcepool.translation import gettext_lazy as _


def _cell(value: Any) -> Any:
    return escape_formulas(json.dumps(value, default=str) if isinstance(value, dict | list) else value)


def csv_response(
    name: str, columns: Sequence[str], records: Iterable[Mapping[str, Any]]
) -> StreamingHttpResponse:
    """Return the ``columns`` of these records as a file ``name``.csv."""
    lines = csv_lines(columns, records, _cell)
    response = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


@admin.action(description=_("Export as CSV (without passwords)"), permissions=["view"])
def export(page: Any, request: HttpRequest, rows: Any) -> StreamingHttpResponse:
    return csv_response(
        page.opts.model_name, resource_columns(rows.model, to_import=False), resource_records(rows)
    )
