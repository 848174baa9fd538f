"""Runs operations on queue groups, servers or queues: one queue group after the other."""

from functools import partial
from itertools import groupby
from typing import Any

from django.contrib import messages
from django.http import HttpRequest
from django.utils.text import capfirst

from resourcepool.admin.operations_mixin import OperationsAdminMixin
from resourcepool.labels import join_names
from resourcepool.operations.operation import described
from resourcepool.operations.queues import queue_group_of
from resourcepool.queues.ids import MAX_QUEUES_AT_ONCE
from resourcepool.translation import gettext_lazy as _


class PerQueueGroupAdminMixin(OperationsAdminMixin):
    """An admin whose operations run once per queue group, each on all of its chosen rows or on none."""

    def display_name(self, row: Any) -> str:
        return f"{row.queue_group}: {row}"

    def perform(self, request: HttpRequest, chosen: Any, operation: Any, entered: dict[str, Any]) -> None:
        """Run it until it fails; messages count the changed and the unchanged rows."""
        names, actor, chosen = list[str](), request.user.get_username(), chosen[:MAX_QUEUES_AT_ONCE]
        for queue_group, group in groupby(sorted(chosen, key=queue_group_of), queue_group_of):
            rows = list(group)
            if not self.attempt(request, partial(operation.do, rows, actor=actor, **entered)):
                text = _("%(count)d not changed, or unknown.") % {"count": len(chosen) - len(names)}
                self.message_user(request, text, messages.WARNING)
                break
            self.log(request, rows, operation)
            names += map(str, rows)
            self.attempt(request, partial(self._warn, request, operation, queue_group, entered))
        if names:
            values = {"what": described(self.model, len(names), names), "names": join_names(names)}
            text = capfirst(operation.done_message % {"count": len(names), **values})
            self.message_user(request, text, messages.SUCCESS)

    def _warn(self, request: HttpRequest, operation: Any, queue_group: str, entered: dict[str, Any]) -> None:
        for text in operation.warnings(queue_group, **entered):
            self.message_user(request, text, messages.WARNING)
