"""The page that asks before something is done to streams or tasks, and the doing of it in one statement."""

from typing import Any

from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.db import connections, router
from django.http import HttpRequest

from resourcepool.admin.queues.asking import Asking
from resourcepool.database.retry import retrying
from resourcepool.operations import Operation
from resourcepool.queues.ids import MOST_AT_ONCE


class AskingByRows(Asking):
    """A list whose actions are done to the chosen rows at once."""

    def called(self, row: Any) -> str:
        """Return its name; of a task, its stream and key."""
        return str(row)

    def perform(self, request: HttpRequest, chosen: Any, operation: Operation, entered: dict[str, Any]) -> None:
        """See ``Operated``."""
        rows, using = chosen[:MOST_AT_ONCE], router.db_for_write(self.model)
        those = self.model._default_manager.using(using).filter(pk__in=[row.pk for row in rows])
        actor, concerned, count = request.user.get_username(), set[Any](), 0

        def do() -> None:
            nonlocal concerned, count
            concerned = set(operation.concerned(those).values_list("pk", flat=True))
            count = retrying(connections[using], lambda: operation.do(those, actor=actor, **entered))

        if not self.attempt(request, do):
            return
        if count:
            typed = ", ".join(str(value) for value in entered.values() if value)
            said = f"{operation.title}: {typed}" if typed else str(operation.title)
            changed = [row for row in rows if row.pk in concerned]
            LogEntry.objects.log_actions(request.user.pk, changed, CHANGE, said)  # type: ignore[arg-type]
            self.message_user(request, operation.done % {"count": count}, messages.SUCCESS)
        if left := len(rows) - count:
            self.message_user(request, operation.otherwise % {"count": left}, messages.WARNING)
