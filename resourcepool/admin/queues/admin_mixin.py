"""Doing things to queue groups, servers or queues: one queue group after the other."""

from functools import partial
from itertools import groupby
from typing import Any

from django.contrib import messages
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.operations_mixin import OperationsAdminMixin
from resourcepool.labels import join_names
from resourcepool.operations.queues import queue_group_of
from resourcepool.queues.ids import MAX_QUEUES_AT_ONCE


class PerQueueGroupAdminMixin(OperationsAdminMixin):
    """Each queue group is one step: done to all of its chosen rows, or to none."""

    def display_name(self, row: Any) -> str:
        return f"{row.queue_group}: {row}"

    def perform(self, request: HttpRequest, chosen: Any, operation: Any, entered: dict[str, Any]) -> None:
        """Run it until one fails; messages count the rows changed and left."""
        done, given, actor, chosen = 0, list[str](), request.user.get_username(), chosen[:MAX_QUEUES_AT_ONCE]
        for name, some in groupby(sorted(chosen, key=queue_group_of), queue_group_of):
            rows = list(some)
            if not self.attempt(request, partial(operation.do, rows, actor=actor, **entered)):
                text = _("%(count)d not done, or not known to be.") % {"count": len(chosen) - done}
                self.message_user(request, text, messages.WARNING)
                break
            self.log(request, rows, operation)
            done += len(rows)
            given += map(str, rows)
            self.attempt(request, partial(self._warn, request, operation, name, entered))
        if done:
            said = operation.done_message % {"count": done, "names": join_names(given)}
            self.message_user(request, said, messages.SUCCESS)

    def _warn(self, request: HttpRequest, operation: Any, name: str, entered: dict[str, Any]) -> None:
        for text in operation.warnings(name, **entered):
            self.message_user(request, text, messages.WARNING)
