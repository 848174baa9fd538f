"""The page that asks before something is done to task types, servers or queues, and the doing of it."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, InterfaceError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.operated import Operated
from resourcepool.admin.paging import CappedList, CappedPaginator
from resourcepool.admin.queues.orders import Order
from resourcepool.exceptions import BadOption, DatabaseUnavailable, ResourcePoolError
from resourcepool.phrases import shown
from resourcepool.queues.ids import MOST_AT_ONCE
from resourcepool.queues.labels import listed
from resourcepool.queues.models import TaskType

SHOWN = 20
MOST_TOLD = 80  # characters of what was refused


class Asking(Operated):
    """A list that never counts its table, and whose actions ask first; so do the buttons on the page of a row."""

    asking_template = "resourcepool/admin/queues/ask.html"
    change_form_template = "resourcepool/admin/queues/page.html"
    orders: ClassVar[tuple[Order, ...]] = ()  # what the page of a row offers
    at_once: tuple[str, ...] = (*Operated.at_once, "operate")
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

    def own_urls(self) -> list[URLPattern]:
        """Return the address of the page that asks."""
        page = self.admin_site.admin_view(self.operate_view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_operate"
        return [path("<path:object_id>/operate/<slug:name>/", page, name=name)]

    def operate_view(self, request: HttpRequest, object_id: str, name: str) -> HttpResponse:
        """Ask, and do it to one row."""
        if not self.has_operate_permission(request):
            raise PermissionDenied
        order = next((order for order in self.orders if order.name == name), None)
        if order is None:
            raise Http404
        return self.ask_about(request, object_id, order, there=self.url_of("change", object_id))

    def ask_about(self, request: HttpRequest, object_id: str, order: Order, there: str) -> HttpResponse:
        """Return the page that asks about one row; ``there``, once it is done."""
        found = self.get_object(request, unquote(object_id))
        if found is None:
            raise Http404
        rows = self.get_queryset(request).filter(pk=found.pk)
        return self.ask(request, rows, order, back=there) or HttpResponseRedirect(there)

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Add what can be done."""
        row = kwargs.get("obj")
        if row is not None and self.has_operate_permission(request, row):
            context["buttons"] = [
                (order, self.url_of("operate", quote(row.pk), order.name))
                for order in self.orders
                if order.fits(row)
            ]
        return super().render_change_form(request, context, *args, **kwargs)

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
            self.message_user(request, told(error), messages.ERROR)
        except (DatabaseError, InterfaceError) as error:
            unknown = DatabaseUnavailable(f"database {self.get_queryset(request).db!r}: {error}")
            self.message_user(request, shown(unknown), messages.ERROR)
        else:
            return True
        return False

    def _give(self, request: HttpRequest, order: Order, chosen: Sequence[Any], entered: dict[str, Any]) -> None:
        done, given, by = 0, list[str](), request.user.get_username()
        for name, some in groupby(sorted(chosen, key=_task_type), _task_type):
            rows = list(some)
            if not self.attempt(request, lambda name=name, rows=rows: order.give(name, rows, entered, by)):  # type: ignore[misc]
                text = _("%(count)d not done, or not known to be.") % {"count": len(chosen) - done}
                self.message_user(request, text, messages.WARNING)
                break
            LogEntry.objects.log_actions(request.user.pk, rows, CHANGE, str(order.title))  # type: ignore[arg-type]
            done += len(rows)
            given += map(str, rows)
            self.attempt(request, lambda name=name: self._tell(request, order.but(name, entered)))  # type: ignore[misc]
        if done:
            self.message_user(request, order.done % {"count": done, "names": listed(given)}, messages.SUCCESS)

    def _tell(self, request: HttpRequest, texts: Sequence[str]) -> None:
        for text in texts:
            self.message_user(request, text, messages.WARNING)


def told(error: ResourcePoolError) -> str:
    """Return what was refused and why, as one says it beside a form: “7, 8” instead of queue=['7', '8']."""
    if not isinstance(error, BadOption):
        return shown(error)
    values = error.value if isinstance(error.value, list) else [error.value]
    name, value = error.name, listed([str(each) for each in values])[:MOST_TOLD]
    return shown(f"{name}={value} is not allowed: {error.allowed}").replace(f"{name}={value}", f"“{value}”", 1)


def _task_type(row: Any) -> str:
    return str(row.name if isinstance(row, TaskType) else row.task_type.name)


def action_of(order: Order) -> Callable[..., HttpResponse | None]:
    """Return ``order`` as an action of a list."""

    def action(page: Asking, request: HttpRequest, rows: Any) -> HttpResponse | None:
        return page.ask(request, rows, order, back=request.get_full_path())

    action.__name__ = order.name
    return admin.action(action, permissions=[order.permission], description=order.title)
