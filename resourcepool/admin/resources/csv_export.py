"""Export the selected resources as CSV, without secrets."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, StreamingHttpResponse

from resourcepool.admin.csv_response import csv_response
from resourcepool.status.export import resource_columns, resource_records
from resourcepool.translation import gettext_lazy as _


@admin.action(description=_("Export as CSV (without passwords)"), permissions=["view"])
def export(page: Any, request: HttpRequest, rows: Any) -> StreamingHttpResponse:
    return csv_response(
        page.opts.model_name, resource_columns(rows.model, to_import=False), resource_records(rows)
    )
