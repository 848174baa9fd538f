"""The page that asks before something is done to task types, servers or queues, and the doing of it."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Any, ClassVar

from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.operated import Operated
from resourcepool.events import say, shown
from resourcepool.exceptions import BadOption, DatabaseUnavailable, ResourcePoolError
from resourcepool.labels import listed
from resourcepool.operations import Operation
from resourcepool.operations.queues import task_type_of
from resourcepool.queues.ids import MOST_AT_ONCE

SHOWN = 20
MOST_TOLD = 80  # characters of what was refused


class Asking(Operated):
    """A list whose actions ask first; so do the buttons on the page of a row."""

    change_form_template = "resourcepool/admin/queues/page.html"
    sortable_by: ClassVar[Any] = ()

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Add what can be done."""
        row = kwargs.get("obj")
        if row is not None:
            context["buttons"] = self.buttons(request, row)
        return super().render_change_form(request, context, *args, **kwargs)

    def chosen(self, rows: Any, operation: Operation) -> list[Any]:
        """See ``Operated``; one more than it is done to, if there are more."""
        return list(rows.order_by("pk")[: MOST_AT_ONCE + 1])

    def about(self, request: HttpRequest, chosen: list[Any], operation: Operation) -> dict[str, Any]:
        """See ``Operated``."""
        count = len(chosen[:MOST_AT_ONCE])
        return {
            "count": count,
            "most": MOST_AT_ONCE if len(chosen) > count else 0,
            "listed": [str(self.called(row)) for row in chosen[:SHOWN]],
            "more": max(0, count - SHOWN),
        }

    def called(self, row: Any) -> str:
        """Return what people call ``row``."""
        return f"{row.task_type}: {row}"

    def attempt(self, request: HttpRequest, work: Callable[[], object]) -> bool:
        """Do it, or say why it could not be done; tell which."""
        try:
            work()
        except ResourcePoolError as error:
            self.message_user(request, told(error), messages.ERROR)
        except (DatabaseError, InterfaceError) as error:
            unknown = DatabaseUnavailable(
                say("database", alias=repr(self.get_queryset(request).db), error=str(error))
            )
            self.message_user(request, shown(unknown), messages.ERROR)
        else:
            return True
        return False

    def perform(self, request: HttpRequest, chosen: Any, operation: Any, entered: dict[str, Any]) -> None:
        """See ``Operated``; one task type after the other, until something goes wrong."""
        done, given, actor, chosen = 0, list[str](), request.user.get_username(), chosen[:MOST_AT_ONCE]
        for name, some in groupby(sorted(chosen, key=task_type_of), task_type_of):
            rows = list(some)
            if not self.attempt(request, partial(operation.do, rows, actor=actor, **entered)):
                text = _("%(count)d not done, or not known to be.") % {"count": len(chosen) - done}
                self.message_user(request, text, messages.WARNING)
                break
            LogEntry.objects.log_actions(request.user.pk, rows, CHANGE, str(operation.title))  # type: ignore[arg-type]
            done += len(rows)
            given += map(str, rows)
            self.attempt(request, lambda name=name: self._tell(request, operation.but(name, **entered)))  # type: ignore[misc]
        if done:
            said = operation.done % {"count": done, "names": listed(given)}
            self.message_user(request, said, messages.SUCCESS)

    def _tell(self, request: HttpRequest, texts: Sequence[str]) -> None:
        for text in texts:
            self.message_user(request, text, messages.WARNING)


def told(error: ResourcePoolError) -> str:
    """Return what was refused and why, as one says it beside a form: “7, 8” instead of queue=['7', '8']."""
    if not isinstance(error, BadOption):
        return shown(error)
    values = error.value if isinstance(error.value, list) else [error.value]
    value = listed([str(each) for each in values])[:MOST_TOLD]
    said = shown(say("not_allowed", name=error.name, value=value, why=error.why))
    return said.replace(f"{error.name}={value}", f"“{value}”", 1)
