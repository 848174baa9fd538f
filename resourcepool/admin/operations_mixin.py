"""Run operations from lists and pages: with a permission of their own, outside the transaction of the request."""

import datetime
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.options import IS_POPUP_VAR
from django.contrib.admin.utils import quote, unquote
from django.contrib.auth import get_permission_codename
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, InterfaceError, connections, router, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern
from django.utils.html import format_html_join
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from resourcepool.admin.base import BaseAdmin
from resourcepool.admin.columns import operation_button
from resourcepool.admin.forms import OperationForm
from resourcepool.db.dialect import read_clock
from resourcepool.events import localized, sentence_for
from resourcepool.exceptions import BadOption, ResourcePoolError
from resourcepool.operations import Operation
from resourcepool.operations.operation import Applied, described
from resourcepool.queues.queries import MAX_QUEUES_AT_ONCE
from resourcepool.text import join_names
from resourcepool.translation import gettext_lazy, gettext_lazy as _, ngettext_lazy

_LOCKED = gettext_lazy("%(count)d unchanged.")
_UNKNOWN = ngettext_lazy(
    "%(count)d not changed, or unknown; the list shows its state.",
    "%(count)d not changed, or unknown; the list shows their states.",
    "count",
)
NEXT = "next"  # parameter with the page to return to
SHOWN = 20  # rows listed on the confirmation page
MAX_VALUE_LENGTH = 80  # of a refused value in a message


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The chosen rows, up to the number that an operation changes at once.

    Attributes:
        rows: all of them, or the first ones, for the confirmation page.
        count: how many they are.
        is_cut: whether more were chosen.
    """

    rows: list[Any]
    count: int
    is_cut: bool


class OperationsAdminMixin(BaseAdmin):
    """Offers operations: each is an action of the list and a button on the page of a row.

    Both show a confirmation page first. An operation needs its own permission and the permission to view the list.

    Attributes:
        operations: the operations on rows of this model, by name.
        row_operations: the names of those that have a button in each row of the list.
        non_atomic_pages: names of the pages that run outside of ATOMIC_REQUESTS, so that changes are visible at once
            and a locked row does not hold up the request. Pages with Django's forms open their own transaction.
    """

    confirmation_template = "resourcepool/admin/operate.html"
    non_atomic_pages: tuple[str, ...] = ("changelist", "add", "change", "delete", "operate")
    sortable_by: ClassVar[Any] = ()
    operations: Mapping[str, Operation] = {}
    row_operations: tuple[str, ...] | None = None

    def can_offer(self, operation: Operation, row: Any) -> bool:
        """Return whether the page of ``row`` offers it: it would change something."""
        return bool(operation.states) and operation.is_offered(row)

    def has_operate_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may run operations here."""
        permission = f"{self.opts.app_label}.{get_permission_codename('operate', self.opts)}"
        return bool(request.user.has_perm(permission)) and self.has_view_or_change_permission(request, obj)

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Return whether the user may add rows; this also needs the permission to view them."""
        return super().has_add_permission(request, *args) and self.has_view_or_change_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may delete rows; this also needs the permission to view them."""
        allowed = super().has_delete_permission(request, obj)
        return allowed and self.has_view_or_change_permission(request, obj)

    def get_urls(self) -> list[URLPattern]:
        """Return the URLs of all pages, with ``non_atomic_pages`` exempt from ATOMIC_REQUESTS."""
        operate = self.url_pattern("<path:object_id>/operate/<slug:name>/", self.operate_view, "operate")
        urls = [operate, *super().get_urls()]
        for url in urls:
            if str(url.name).rpartition("_")[2] in self.non_atomic_pages:
                for alias in connections:
                    transaction.non_atomic_requests(using=alias)(url.callback)
        return urls

    def can_run(self, request: HttpRequest, operation: Operation, row: Any = None) -> bool:
        """Return whether the user may run ``operation``, on ``row`` if given."""
        return bool(getattr(self, f"has_{operation.permission}_permission")(request, row))

    def get_actions(self, request: HttpRequest) -> Any:
        """Return the actions of the list: the operations that the user may run, then the others."""
        others: Any = super().get_actions(request)
        if self.actions is None or IS_POPUP_VAR in request.GET:
            return others
        offered = [
            operation
            for operation in self.operations.values()
            if operation.is_for(self.model) and self.can_run(request, operation)
        ]
        return {
            operation.name: (_action(operation), operation.name, operation.title) for operation in offered
        } | others

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Add the buttons of the operations that the user may run on ``row`` now."""
        context = super().page_context(request, row)  # first: it loads what operations depend on
        offered = [operation for operation in self.operations.values() if self.can_run(request, operation, row)]
        buttons = [
            operation_button(operation, url, f"operate-{operation.name}")
            for operation, url in self._offers(row, offered)
        ]
        return context | {"buttons": buttons}

    def _offers(self, row: Any, operations: Iterable[Operation]) -> list[tuple[Operation, str]]:
        """Return those of ``operations`` that would change something, each with its URL."""
        return [
            (operation, self.page_url("operate", quote(row.pk), operation.name))
            for operation in operations
            if operation.is_for(self.model) and self.can_offer(operation, row)
        ]

    def get_list_display(self, request: HttpRequest) -> Any:
        return [*super().get_list_display(request), *self.operations_column(request)]

    def operations_column(self, request: HttpRequest) -> list[Any]:
        """Return the column with the buttons of each row; none if the user may not run any of the operations."""
        if not self._in_rows(request) or IS_POPUP_VAR in request.GET:
            return []

        @admin.display(description=_("operations"))
        def operate(row: Any) -> str:
            return self.row_buttons(request, row)

        return [operate]

    def row_buttons(self, request: HttpRequest, row: Any) -> SafeString:
        """Return the buttons of a row in a list; they lead back to the page of ``request``."""
        back = urlencode({NEXT: request.get_full_path()})
        offers = self._offers(row, self._in_rows(request))
        return format_html_join(" ", "{}", ((operation_button(each, f"{url}?{back}"),) for each, url in offers))

    def _in_rows(self, request: HttpRequest) -> list[Operation]:
        """Return the operations for the rows of a list that the user may run."""
        chosen = self.operations if self.row_operations is None else self.row_operations
        operations = (self.operations[name] for name in chosen)
        return [each for each in operations if each.states and self.can_run(request, each)]

    def operate_view(self, request: HttpRequest, object_id: str, name: str, back: str = "") -> HttpResponse:
        """Confirm, run it on one row, and go to ``back``, to the row's page or, if it was removed, to the list."""
        operation = self.operations.get(name)
        if operation and not (operation.states or back):
            operation = None  # it has its own URL
        if not (self.can_run(request, operation) if operation else self.has_operate_permission(request)):
            raise PermissionDenied
        row = self.get_object(request, unquote(object_id))
        if operation is None or row is None:
            raise Http404
        if not self.can_run(request, operation, row):
            raise PermissionDenied
        next_url = back or _next(request) or self.page_url("change", object_id)
        rows = self.get_queryset(request).filter(pk=row.pk)
        if page := self.confirm_or_run(request, rows, operation, back=next_url):
            return page
        is_removed = next_url == self.page_url("change", object_id) and not rows.exists()
        return HttpResponseRedirect(self.page_url("changelist") if is_removed else next_url)

    def confirm_or_run(
        self, request: HttpRequest, rows: Any, operation: Operation, back: str
    ) -> HttpResponse | None:
        """Return the confirmation page; None after the operation has run, when messages report its result."""
        if not self.can_run(request, operation):
            raise PermissionDenied
        chosen = self.select_rows(rows, operation)
        is_confirmed = request.method == "POST" and "confirmed" in request.POST
        form = OperationForm(
            request.POST if is_confirmed else None,
            operation=operation,
            now=self.now,
            actor=request.user.get_username(),
        )
        if is_confirmed and form.is_valid():
            self.perform(request, chosen, operation, form.cleaned_data)
            return None
        context = {
            "operation": operation,
            "checkbox": ACTION_CHECKBOX_NAME,
            "chosen": request.POST.getlist(ACTION_CHECKBOX_NAME),
            "select_across": request.POST.get("select_across", "0"),
            **self.confirmation_context(request, chosen, operation),
        }
        return self.render_form_page(request, capfirst(operation.title), form, back, context)

    def render_form_page(
        self, request: HttpRequest, title: str, form: forms.Form, back: str, extra_context: dict[str, Any]
    ) -> HttpResponse:
        """Return a page with ``form``; *Cancel* leads to ``back``."""
        context = {"form": form, "back": back, "media": self.media + form.media, **extra_context}
        return self.render_page(request, self.confirmation_template, title, **context)

    def now(self) -> datetime.datetime:
        """Return the time of the database's clock."""
        return read_clock(connections[self.model.pool.using])

    def select_rows(self, rows: Any, operation: Operation) -> Selection:
        """Return the chosen rows, as many as one operation changes."""
        found = list(rows.order_by("pk")[: MAX_QUEUES_AT_ONCE + 1])
        chosen = found[:MAX_QUEUES_AT_ONCE]
        return Selection(rows=chosen, count=len(chosen), is_cut=len(found) > len(chosen))

    def confirmation_context(self, request: HttpRequest, chosen: Any, operation: Operation) -> dict[str, Any]:
        """Return the context of the confirmation page for the ``chosen`` rows."""
        return {
            "count": chosen.count,
            "most": chosen.count if chosen.is_cut else 0,
            "listed": [self.display_name(row) for row in chosen.rows[:SHOWN]],
            "more": max(0, chosen.count - SHOWN),
        }

    def display_name(self, row: Any) -> str:
        """Return the name of ``row`` on the confirmation page."""
        return str(row)

    def perform(self, request: HttpRequest, chosen: Any, operation: Operation, entered: dict[str, Any]) -> None:
        """Run it on the chosen rows; messages and Django's log report the result."""
        applied = operation.apply(
            self.parts(request, chosen, operation),
            entered,
            actor=request.user.get_username(),
            found=chosen.count,
            log=partial(self.log, request, operation, self.logged_values(entered)),
        )
        for error in applied.errors:
            self.message_user(request, self.error_text(request, error), messages.ERROR)
        for text in applied.warnings:
            self.message_user(request, text, messages.WARNING)
        for text in applied.done_messages(self.model, list(map(str, applied.rows))):
            self.message_user(request, text, messages.SUCCESS)
        if applied.skipped:
            text = _LOCKED if applied.is_known else _UNKNOWN
            left = text % {"count": applied.skipped} if applied.errors else applied.skipped_message
            left = f"{_skipped_names(chosen, applied)}{left}"
            self.message_user(request, left, messages.WARNING)

    def parts(self, request: HttpRequest, chosen: Any, operation: Operation) -> Iterable[Any]:
        """Return the chosen rows in parts, each to be changed in one call."""
        rows = self.model._default_manager.using(router.db_for_write(self.model))
        return [rows.filter(pk__in=[row.pk for row in chosen.rows])]

    def attempt(self, request: HttpRequest, work: Callable[[], object]) -> bool:
        """Run ``work`` and return whether it succeeded; a message shows why not."""
        try:
            work()
        except (ResourcePoolError, DatabaseError, InterfaceError) as error:
            self.message_user(request, self.error_text(request, error), messages.ERROR)
            return False
        return True

    def error_text(self, request: HttpRequest, error: Exception) -> str:
        """Return the message about an error of an operation."""
        if isinstance(error, ResourcePoolError):
            return refusal_text(error)
        alias = self.get_queryset(request).db
        return localized(sentence_for("database", alias=repr(alias), error=str(error)))

    def logged_values(self, entered: dict[str, Any]) -> str:
        """Return what Django's log keeps of the values of the fields."""
        return ", ".join(str(value) for value in entered.values() if value)

    def log(self, request: HttpRequest, operation: Operation, typed: str, rows: list[Any]) -> None:
        """Record the operation, and the ``typed`` values, in Django's log of each row."""
        text = f"{operation.title}: {typed}" if typed else str(operation.title)
        LogEntry.objects.log_actions(request.user.pk, rows, CHANGE, text)  # type: ignore[arg-type]


def _skipped_names(chosen: Any, applied: Applied) -> str:
    """Return "stream orders: " before a message about rows that were skipped; "" if they are too many, or unknown."""
    changed = {row.pk for row in applied.rows}
    skipped = [row for row in chosen.rows if row.pk not in changed]
    if applied.errors or len(skipped) != applied.skipped or len(skipped) > SHOWN:
        return ""
    if len(skipped) == 1:
        return f"{capfirst(described(type(skipped[0]), 1, [str(skipped[0])]))}: "
    return f"{join_names(list(map(str, skipped)))}: "


def _next(request: HttpRequest) -> str:
    """Return the page of this site to which a link in a list leads back; "": none."""
    url = request.GET.get(NEXT, "")
    return url if url_has_allowed_host_and_scheme(url, allowed_hosts=None) else ""


def _action(operation: Operation) -> Callable[..., HttpResponse | None]:
    def action(page: OperationsAdminMixin, request: HttpRequest, rows: Any) -> HttpResponse | None:
        return page.confirm_or_run(request, rows, operation, back=request.get_full_path())

    return action


def refusal_text(error: ResourcePoolError) -> str:
    """Return the message of ``error`` for beside a form: “7, 8” instead of queue=['7', '8']."""
    if not isinstance(error, BadOption):
        return localized(error)
    values = error.value if isinstance(error.value, list) else [error.value]
    value = join_names([str(value) for value in values])[:MAX_VALUE_LENGTH]
    text = localized(sentence_for("not_allowed", name=error.name, value=value, why=error.why))
    return text.replace(f"{error.name}={value}", f"“{value}”", 1)
