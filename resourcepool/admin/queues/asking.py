"""The page that asks before something is done to task types, servers or queues, and the doing of it."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.operated import Operated
from resourcepool.admin.paging import CappedList, CappedPaginator
from resourcepool.admin.queues.orders import Order
from resourcepool.exceptions import DatabaseUnavailable, ResourcePoolError
from resourcepool.phrases import shown
from resourcepool.queues.models import TaskType
from resourcepool.queues.operating import MOST_AT_ONCE

SHOWN = 20


class Asking(Operated):
    """A list that never counts its table, and whose actions ask first."""

    asking_template = "resourcepool/admin/queues/ask.html"
    list_per_page = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = CappedPaginator
    sortable_by = ()

    class Media:
        css = {"all": ("resourcepool/admin.css",)}

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[CappedList]:
        """Return the list that does not count."""
        return CappedList

    def ask(self, request: HttpRequest, rows: Any, order: Order, back: str) -> HttpResponse | None:
        """Return the page that asks; None once it is done, as far as it could be: messages say so."""
        if not getattr(self, f"has_{order.permission}_permission")(request):
            raise PermissionDenied
        found = list(rows.order_by("pk")[: MOST_AT_ONCE + 1])
        chosen = found[:MOST_AT_ONCE]
        is_answered = request.method == "POST" and "confirmed" in request.POST
        form = order.form(request.POST if is_answered else None)
        if is_answered and form.is_valid():
            self._give(request, order, chosen, form.cleaned_data)
            return None
        context = {
            "operation": order,
            "count": len(chosen),
            "most": MOST_AT_ONCE if len(found) > MOST_AT_ONCE else 0,
            "listed": [str(self.called(row)) for row in chosen[:SHOWN]],
            "more": len(chosen[SHOWN:]),
            "checkbox": ACTION_CHECKBOX_NAME,
            "chosen": request.POST.getlist(ACTION_CHECKBOX_NAME),
            "select_across": request.POST.get("select_across", "0"),
        }
        return self.form_page(request, capfirst(order.title), form, back, context)

    def form_page(
        self, request: HttpRequest, title: str, form: forms.Form, back: str, more: dict[str, Any]
    ) -> HttpResponse:
        """Return a page beside the list with a form on it."""
        context = {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "form": form,
            "back": back,
            "media": self.media + form.media,
            **more,
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, self.asking_template, context)

    def called(self, row: Any) -> str:
        """Return what people call ``row``."""
        return f"{row.task_type}: {row}"

    def attempt(self, request: HttpRequest, work: Callable[[], object]) -> bool:
        """Do it, or say why it could not be done; tell which."""
        try:
            work()
        except ResourcePoolError as error:
            self.message_user(request, shown(error), messages.ERROR)
        except (DatabaseError, InterfaceError) as error:
            told = DatabaseUnavailable(f"database {self.get_queryset(request).db!r}: {error}")
            self.message_user(request, shown(told), messages.ERROR)
        else:
            return True
        return False

    def _give(self, request: HttpRequest, order: Order, chosen: Sequence[Any], entered: dict[str, Any]) -> None:
        done, by = 0, request.user.get_username()
        for name, some in groupby(sorted(chosen, key=_task_type), _task_type):
            rows = list(some)
            if not self.attempt(request, lambda name=name, rows=rows: order.give(name, rows, entered, by)):  # type: ignore[misc]
                text = _("%(count)d more: not done, or not known to be.") % {"count": len(chosen) - done}
                self.message_user(request, text, messages.WARNING)
                break
            LogEntry.objects.log_actions(request.user.pk, rows, CHANGE, str(order.title))  # type: ignore[arg-type]
            done += len(rows)
        if done:
            self.message_user(request, order.done % {"count": done}, messages.SUCCESS)


def _task_type(row: Any) -> str:
    return str(row.name if isinstance(row, TaskType) else row.task_type.name)


def action_of(order: Order) -> Callable[..., HttpResponse | None]:
    """Return ``order`` as an action of a list."""

    def action(page: Asking, request: HttpRequest, rows: Any) -> HttpResponse | None:
        return page.ask(request, rows, order, back=request.get_full_path())

    action.__name__ = order.name
    return admin.action(action, permissions=[order.permission], description=order.title)
