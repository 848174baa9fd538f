"""Pages on which an operator does something: with a permission of its own, and outside of the page's transaction."""

import datetime
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.options import IS_POPUP_VAR
from django.contrib.admin.utils import quote, unquote
from django.contrib.auth import get_permission_codename
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, InterfaceError, connections, router, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern
from django.utils.text import capfirst

from resourcepool.admin.base import BaseAdmin
from resourcepool.admin.forms import OperationForm
from resourcepool.database.retry import retrying
from resourcepool.dialect import read_clock
from resourcepool.events import localized, sentence_for
from resourcepool.exceptions import BadOption, DatabaseUnavailable, ResourcePoolError
from resourcepool.labels import join_names
from resourcepool.operations import Operation
from resourcepool.queues.ids import MAX_QUEUES_AT_ONCE

SHOWN = 20
MOST_TOLD = 80  # characters of what was refused


class OperationsAdminMixin(BaseAdmin):
    """For those who may see the list: whatever may be done besides takes a permission of its own, and that one.

    Each of ``operations`` is an action of the list and a button on the page of a row; both ask first, on the same page.

    ``at_once``: the pages whose changes are seen by others at once, whatever ATOMIC_REQUESTS says, and for which nobody
    waits long where a row is locked. Those with Django's forms have a transaction of their own.
    """

    confirmation_template = "resourcepool/admin/operate.html"
    change_form_template = "resourcepool/admin/queues/page.html"
    at_once: tuple[str, ...] = ("changelist", "add", "change", "delete", "operate")
    sortable_by: ClassVar[Any] = ()

    operations: Mapping[str, Operation] = {}  # what can be done to rows of this model, by name

    def can_offer(self, operation: Operation, row: Any) -> bool:
        """Tell whether the page of ``row`` offers it, because it would change something."""
        return bool(operation.states) and operation.is_offered(row)

    def has_operate_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell whether this user may run operations here."""
        permission = f"{self.opts.app_label}.{get_permission_codename('operate', self.opts)}"
        return bool(request.user.has_perm(permission)) and self.has_view_or_change_permission(request, obj)

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Tell whether this user may add rows; it needs the permission to view them, too."""
        return super().has_add_permission(request, *args) and self.has_view_or_change_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell whether this user may delete rows; it needs the permission to view them, too."""
        allowed = super().has_delete_permission(request, obj)
        return allowed and self.has_view_or_change_permission(request, obj)

    def get_urls(self) -> list[URLPattern]:
        """Return the addresses of all pages, those ``at_once`` outside of ATOMIC_REQUESTS."""
        asks = self.url_pattern("<path:object_id>/operate/<slug:name>/", self.operate_view, "operate")
        urls = [asks, *super().get_urls()]
        for url in urls:
            if str(url.name).rpartition("_")[2] in self.at_once:
                for alias in connections:
                    transaction.non_atomic_requests(using=alias)(url.callback)
        return urls

    def may(self, request: HttpRequest, operation: Operation, row: Any = None) -> bool:
        """Tell whether this user may do ``operation``, to ``row`` if one is named."""
        return bool(getattr(self, f"has_{operation.permission}_permission")(request, row))

    def get_actions(self, request: HttpRequest) -> Any:
        """Return the actions of the list: the operations that this user may do, and the others."""
        found: Any = super().get_actions(request)
        if self.actions is None or IS_POPUP_VAR in request.GET:
            return found
        offered = [one for one in self.operations.values() if one.is_for(self.model) and self.may(request, one)]
        return {one.name: (_action_of(one), one.name, one.title) for one in offered} | found

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Add (operation, URL) of every operation that this user may run on ``row`` now."""
        buttons = [
            (one, self.page_url("operate", quote(row.pk), name))
            for name, one in self.operations.items()
            if one.is_for(self.model) and self.may(request, one, row) and self.can_offer(one, row)
        ]
        return super().page_context(request, row) | {"buttons": buttons}

    def operate_view(self, request: HttpRequest, object_id: str, name: str, back: str = "") -> HttpResponse:
        """Ask, and do it to one row; then go to ``back``, or to its page, or, if it is removed, to the list."""
        operation = self.operations.get(name)
        if operation and not (operation.states or back):
            operation = None  # it has an address of its own
        if not (self.may(request, operation) if operation else self.has_operate_permission(request)):
            raise PermissionDenied
        row = self.get_object(request, unquote(object_id))
        if operation is None or row is None:
            raise Http404
        if not self.may(request, operation, row):
            raise PermissionDenied
        there = back or self.page_url("change", object_id)
        rows = self.get_queryset(request).filter(pk=row.pk)
        if page := self.ask(request, rows, operation, back=there):
            return page
        is_gone = not back and not rows.exists()
        return HttpResponseRedirect(self.page_url("changelist") if is_gone else there)

    def ask(self, request: HttpRequest, rows: Any, operation: Operation, back: str) -> HttpResponse | None:
        """Return the confirmation page; None after the operation has run: messages report its result."""
        if not self.may(request, operation):
            raise PermissionDenied
        chosen = self.select_rows(rows, operation)
        is_answered = request.method == "POST" and "confirmed" in request.POST
        form = OperationForm(request.POST if is_answered else None, operation=operation, now=self.now)
        if is_answered and form.is_valid():
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
        self, request: HttpRequest, title: str, form: forms.Form, back: str, more: dict[str, Any]
    ) -> HttpResponse:
        """Return a page beside the list with a form on it."""
        more = {"form": form, "back": back, "media": self.media + form.media, **more}
        return self.render_page(request, self.confirmation_template, title, **more)

    def now(self) -> datetime.datetime:
        """Return the moment by the clock of the model's database."""
        return read_clock(connections[self.model.pool.using])

    def select_rows(self, rows: Any, operation: Operation) -> Any:
        """Return the rows as they stand: as many as are done at once, and one more if there are more."""
        return list(rows.order_by("pk")[: MAX_QUEUES_AT_ONCE + 1])

    def confirmation_context(self, request: HttpRequest, chosen: Any, operation: Operation) -> dict[str, Any]:
        """Return the context of the confirmation page for the ``chosen`` rows."""
        count = len(chosen[:MAX_QUEUES_AT_ONCE])
        return {
            "count": count,
            "most": MAX_QUEUES_AT_ONCE if len(chosen) > count else 0,
            "listed": [self.display_name(row) for row in chosen[:SHOWN]],
            "more": max(0, count - SHOWN),
        }

    def display_name(self, row: Any) -> str:
        """Return the name of ``row`` on the confirmation page."""
        return str(row)

    def perform(self, request: HttpRequest, chosen: Any, operation: Operation, entered: dict[str, Any]) -> None:
        """Run it on the chosen rows in one statement; messages count the rows changed and left."""
        rows, using = chosen[:MAX_QUEUES_AT_ONCE], router.db_for_write(self.model)
        those = self.model._default_manager.using(using).filter(pk__in=[row.pk for row in rows])
        actor, concerned, count = request.user.get_username(), set[Any](), 0

        def do() -> None:
            nonlocal concerned, count
            concerned = set(operation.applicable(those).values_list("pk", flat=True))
            count = retrying(connections[using], lambda: operation.do(those, actor=actor, **entered))

        if not self.attempt(request, do):
            return
        if count:
            typed = ", ".join(str(value) for value in entered.values() if value)
            self.log(request, [row for row in rows if row.pk in concerned], operation, typed)
            self.message_user(request, operation.done_message % {"count": count}, messages.SUCCESS)
        if left := len(rows) - count:
            self.message_user(request, operation.skipped_message % {"count": left}, messages.WARNING)

    def attempt(self, request: HttpRequest, work: Callable[[], object]) -> bool:
        """Run ``work``, or show why it failed; return whether it succeeded."""
        try:
            work()
        except ResourcePoolError as error:
            self.message_user(request, refusal_text(error), messages.ERROR)
        except (DatabaseError, InterfaceError) as error:
            unknown = unanswered(self.get_queryset(request).db, error)
            self.message_user(request, localized(unknown), messages.ERROR)
        else:
            return True
        return False

    def log(self, request: HttpRequest, rows: list[Any], operation: Operation, typed: str | None = "") -> None:
        """Record the operation, and the text that was ``typed``, in Django's log of each row."""
        said = f"{operation.title}: {typed}" if typed else str(operation.title)
        LogEntry.objects.log_actions(request.user.pk, rows, CHANGE, said)  # type: ignore[arg-type]


def _action_of(operation: Operation) -> Callable[..., HttpResponse | None]:
    def action(page: OperationsAdminMixin, request: HttpRequest, rows: Any) -> HttpResponse | None:
        return page.ask(request, rows, operation, back=request.get_full_path())

    return action


def unanswered(alias: str, error: Exception) -> DatabaseUnavailable:
    """Return the error to show if the database did not answer."""
    return DatabaseUnavailable(sentence_for("database", alias=repr(alias), error=str(error)))


def refusal_text(error: ResourcePoolError) -> str:
    """Return what was refused and why, as one says it beside a form: “7, 8” instead of queue=['7', '8']."""
    if not isinstance(error, BadOption):
        return localized(error)
    values = error.value if isinstance(error.value, list) else [error.value]
    value = join_names([str(each) for each in values])[:MOST_TOLD]
    said = localized(sentence_for("not_allowed", name=error.name, value=value, why=error.why))
    return said.replace(f"{error.name}={value}", f"“{value}”", 1)
