"""Runs operations on queue groups, servers or queues: one queue group after the other."""

from collections.abc import Iterable
from typing import Any

from django.http import HttpRequest

from resourcepool.admin.operations_mixin import OperationsAdminMixin
from resourcepool.operations.queues import by_queue_group


class PerQueueGroupAdminMixin(OperationsAdminMixin):
    """An admin whose operations run once per queue group, each on all of its chosen rows or on none."""

    def display_name(self, row: Any) -> str:
        return f"{row.queue_group}: {row}"

    def parts(self, request: HttpRequest, chosen: Any, operation: Any) -> Iterable[Any]:
        return by_queue_group(chosen.rows)

    def logged_values(self, entered: dict[str, Any]) -> str:
        return ""
