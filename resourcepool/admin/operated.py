"""Pages on which one may do things: a permission of their own, and nothing is done inside a transaction of the page."""

import datetime
from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IS_POPUP_VAR
from django.contrib.admin.utils import quote, unquote
from django.contrib.auth import get_permission_codename
from django.core.exceptions import PermissionDenied
from django.db import connections, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.text import capfirst

from resourcepool.admin.forms import OperationForm
from resourcepool.admin.generic import Admin
from resourcepool.dialect import read_clock
from resourcepool.operations import Operation


class Operated(Admin):
    """For those who may see the list: whatever may be done besides takes a permission of its own, and that one.

    Each of ``operations`` is an action of the list and a button on the page of a row; both ask first, on the same page.

    ``at_once``: the pages whose changes are seen by others at once, whatever ATOMIC_REQUESTS says, and for which nobody
    waits long where a row is locked. Those with Django's forms have a transaction of their own.
    """

    confirmation_template = "resourcepool/admin/operate.html"
    at_once: tuple[str, ...] = ("changelist", "add", "change", "delete", "operate")

    operations: Mapping[str, Operation] = {}  # what can be done to rows of this model, by name
    # What each kind of page does in its own way:
    chosen: Callable[..., Any]  # (rows, operation): the rows as they stand; as many as are done at once
    about: Callable[..., dict[str, Any]]  # (request, chosen, operation): what the page that asks shows of them
    perform: Callable[..., None]  # (request, chosen, operation, entered): does it; messages say how far

    def offers(self, operation: Operation, row: Any) -> bool:
        """Tell whether the page of ``row`` offers it: elsewhere it would change nothing."""
        return bool(operation.states) and operation.is_offered(row)

    def has_operate_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell whether this user may do here what no form does."""
        permission = f"{self.opts.app_label}.{get_permission_codename('operate', self.opts)}"
        return bool(request.user.has_perm(permission)) and self.has_view_or_change_permission(request, obj)

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Tell whether this user may add rows: only with those may one that can see them, too."""
        return super().has_add_permission(request, *args) and self.has_view_or_change_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell whether this user may delete what is on the list, which must be seen for that."""
        allowed = super().has_delete_permission(request, obj)
        return allowed and self.has_view_or_change_permission(request, obj)

    def get_urls(self) -> list[URLPattern]:
        """Return the addresses of the pages."""
        prefix = f"{self.opts.app_label}_{self.opts.model_name}_"
        urls: list[URLPattern] = [*self.own_urls(), *super().get_urls()]
        for url in urls:
            if url.name in {prefix + page for page in self.at_once}:
                for alias in connections:
                    transaction.non_atomic_requests(using=alias)(url.callback)
        return urls

    def own_urls(self) -> list[URLPattern]:
        """Return the address of the page that asks, which comes before Django's."""
        page = self.admin_site.admin_view(self.operate_view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_operate"
        return [path("<path:object_id>/operate/<slug:name>/", page, name=name)]

    def url_of(self, page: str, *args: Any) -> str:
        """Return the URL of a page of this model."""
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}"
        return reverse(name, args=args, current_app=self.admin_site.name)

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

    def buttons(self, request: HttpRequest, row: Any) -> list[tuple[Operation, str]]:
        """Return (operation, URL) of everything that this user may do to ``row`` and that makes sense now."""
        return [
            (one, self.url_of("operate", quote(row.pk), name))
            for name, one in self.operations.items()
            if one.is_for(self.model) and self.may(request, one, row) and self.offers(one, row)
        ]

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
        there = back or self.url_of("change", object_id)
        rows = self.get_queryset(request).filter(pk=row.pk)
        if page := self.ask(request, rows, operation, back=there):
            return page
        is_gone = not back and not rows.exists()
        return HttpResponseRedirect(self.url_of("changelist") if is_gone else there)

    def ask(self, request: HttpRequest, rows: Any, operation: Operation, back: str) -> HttpResponse | None:
        """Return the page that asks; None once it is done, as far as it could be: messages say so."""
        if not self.may(request, operation):
            raise PermissionDenied
        chosen = self.chosen(rows, operation)
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
            **self.about(request, chosen, operation),
        }
        return self.form_page(request, capfirst(operation.title), form, back, context)

    def form_page(
        self, request: HttpRequest, title: str, form: forms.Form, back: str, more: dict[str, Any]
    ) -> HttpResponse:
        """Return a page beside the list with a form on it."""
        more = {"form": form, "back": back, "media": self.media + form.media, **more}
        return self.page_beside(request, self.confirmation_template, title, **more)

    def now(self) -> datetime.datetime:
        """Return the moment by the clock of the model's database."""
        return read_clock(connections[self.model.pool.using])


def _action_of(operation: Operation) -> Callable[..., HttpResponse | None]:
    def action(page: Operated, request: HttpRequest, rows: Any) -> HttpResponse | None:
        return page.ask(request, rows, operation, back=request.get_full_path())

    return action
