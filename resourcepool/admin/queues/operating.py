"""Doing things to task types, servers or queues: one task type after the other."""

from functools import partial
from itertools import groupby
from typing import Any

from django.contrib import messages
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.operated import Operated
from resourcepool.labels import listed
from resourcepool.operations.queues import task_type_of
from resourcepool.queues.ids import MOST_AT_ONCE


class ByTaskType(Operated):
    """Each task type is one step: done to all of its chosen rows, or to none."""

    def called(self, row: Any) -> str:
        return f"{row.task_type}: {row}"

    def perform(self, request: HttpRequest, chosen: Any, operation: Any, entered: dict[str, Any]) -> None:
        """Run it until one fails; messages count the rows changed and left."""
        done, given, actor, chosen = 0, list[str](), request.user.get_username(), chosen[:MOST_AT_ONCE]
        for name, some in groupby(sorted(chosen, key=task_type_of), task_type_of):
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
            said = operation.done % {"count": done, "names": listed(given)}
            self.message_user(request, said, messages.SUCCESS)

    def _warn(self, request: HttpRequest, operation: Any, name: str, entered: dict[str, Any]) -> None:
        for text in operation.but(name, **entered):
            self.message_user(request, text, messages.WARNING)
