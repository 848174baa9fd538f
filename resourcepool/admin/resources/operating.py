"""Doing things to resources: the same page that asks first, for one resource and for many."""

import contextlib
from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.options import IS_POPUP_VAR
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, InterfaceError, connections
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.text import capfirst
from django.utils.translation import ngettext_lazy

from resourcepool.admin.operated import Operated
from resourcepool.admin.resources.forms import OperationForm
from resourcepool.admin.resources.selection import Selection
from resourcepool.admin.words import named
from resourcepool.dialect import read_clock
from resourcepool.exceptions import DatabaseUnavailable, ResourcePoolError, RowLocked
from resourcepool.operations import OPERATIONS, Operation
from resourcepool.operations.checking import Unfinished
from resourcepool.phrases import shown
from resourcepool.resources.state import State

_LOCKED = ngettext_lazy("%(count)d was left as it is.", "%(count)d were left as they are.", "count")
_UNKNOWN = ngettext_lazy(
    "%(count)d not done, or not known to be; the list shows how it stands.",
    "%(count)d not done, or not known to be; the list shows how they stand.",
    "count",
)


class Operating(Operated):
    """For those with the permission ``operate_<model>``, who may also see the list."""

    confirmation_template = "resourcepool/admin/operate.html"
    at_once: tuple[str, ...] = (*Operated.at_once, "operate")

    def get_actions(self, request: HttpRequest) -> Any:
        """Return the actions of the list: what can be done to resources of this model, by this user; and the others."""
        found: Any = super().get_actions(request)
        if self.actions is None or IS_POPUP_VAR in request.GET:
            return found
        offered = [one for one in OPERATIONS.values() if one.is_for(self.model) and self.may(request, one)]
        return {one.name: (_action_of(one), one.name, one.title) for one in offered} | found

    def may(self, request: HttpRequest, operation: Operation, resource: Any = None) -> bool:
        """Tell whether this user may do ``operation``, to ``resource`` if one is named."""
        return bool(getattr(self, f"has_{operation.permission}_permission")(request, resource))

    def own_urls(self) -> list[URLPattern]:
        """Return the address of the page that asks."""
        page = self.admin_site.admin_view(self.operate_view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_operate"
        return [path("<path:object_id>/operate/<slug:name>/", page, name=name)]

    def operate_view(self, request: HttpRequest, object_id: str, name: str) -> HttpResponse:
        """Ask, and do it to one resource."""
        operation = OPERATIONS.get(name)
        if not (self.may(request, operation) if operation else self.has_operate_permission(request)):
            raise PermissionDenied
        resource = self.get_object(request, unquote(object_id))
        if operation is None or resource is None:
            raise Http404
        if not self.may(request, operation, resource):
            raise PermissionDenied
        page = self.url_of("change", object_id)
        rows = self.get_queryset(request).filter(pk=resource.pk)
        return self.operate(request, rows, operation, back=page) or HttpResponseRedirect(page)

    def operate(self, request: HttpRequest, rows: Any, operation: Operation, back: str) -> HttpResponse | None:
        """Return the page that asks; None once it is done."""
        if not self.may(request, operation):
            raise PermissionDenied
        selection = Selection.of(rows, operation.most)
        is_answered = request.method == "POST" and "confirmed" in request.POST
        now = read_clock(connections[self.model.pool.using])
        form = OperationForm(request.POST if is_answered else None, operation=operation, now=now)
        if is_answered and form.is_valid():
            self._perform(request, selection, operation, form.cleaned_data)
            return None
        context = {
            **self.admin_site.each_context(request),
            "title": capfirst(operation.title),
            "opts": self.opts,
            "operation": operation,
            "form": form,
            "selection": selection,
            "limit": operation.most,
            "listed": [(named(row), self.state(row), row.holder) for row in selection.shown],
            "checkbox": ACTION_CHECKBOX_NAME,
            "chosen": request.POST.getlist(ACTION_CHECKBOX_NAME),
            "select_across": request.POST.get("select_across", "0"),
            "seen": (request.POST.getlist("grant") if is_answered else selection.named),
            "back": back,
            "media": self.media + form.media,
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, self.confirmation_template, context)

    def _perform(
        self, request: HttpRequest, selection: Selection, operation: Operation, entered: dict[str, Any]
    ) -> None:
        seen = request.POST.getlist("grant") if operation.of_a_grant else []
        done, held, actor, trouble = 0, 0, request.user.get_username(), None
        for rows in selection.chunks(seen):
            concerned, changed, trouble = _attempt(operation, rows, entered, actor)
            if changed:
                held += min(changed, _held(operation, rows))
                self._log(request, concerned, operation, entered.get("reason"))
            done += changed
            if trouble:
                self.message_user(request, shown(trouble), messages.ERROR)
            if trouble and not isinstance(trouble, RowLocked):
                break
        self._say(request, operation.done, done - held, messages.SUCCESS)
        self._say(request, operation.later, held, messages.SUCCESS)
        rest = operation.otherwise
        if trouble:
            rest = _LOCKED if isinstance(trouble, RowLocked) else _UNKNOWN
        self._say(request, rest, len(selection.grants) - done, messages.WARNING)

    def _say(self, request: HttpRequest, text: Any, count: int, level: int) -> None:
        if count > 0:
            self.message_user(request, text % {"count": count}, level)

    def _log(self, request: HttpRequest, rows: list[Any], operation: Operation, reason: str | None) -> None:
        said = f"{operation.title}: {reason}" if reason else str(operation.title)
        LogEntry.objects.log_actions(request.user.pk, rows, CHANGE, said)  # type: ignore[arg-type]

    def buttons(self, request: HttpRequest, resource: Any, state: State) -> list[tuple[Operation, str]]:
        """Return (operation, URL) of everything that this user may do to ``resource`` and that makes sense now."""
        return [
            (one, self.url_of("operate", quote(resource.pk), one.name))
            for one in OPERATIONS.values()
            if state in one.states
            and one.is_for(self.model)
            and self.may(request, one, resource)
            and one.is_offered(resource)
        ]

    def state(self, resource: Any) -> str:
        """Return the state of ``resource`` for people."""
        raise NotImplementedError


def _attempt(
    operation: Operation, rows: Any, entered: dict[str, Any], actor: str
) -> tuple[list[Any], int, ResourcePoolError | None]:
    """Do it; return the rows that it concerned, how many were changed, and what went wrong."""
    concerned: list[Any] = []
    try:
        those = operation.concerned(rows)
        concerned = list(those)
        return concerned, operation.do(those, actor=actor, **entered), None
    except Unfinished as error:
        return concerned, error.done, error
    except RowLocked as error:
        return concerned, error.done, error
    except ResourcePoolError as error:
        return concerned, 0, error
    except (DatabaseError, InterfaceError) as error:
        return concerned, 0, DatabaseUnavailable(f"database {rows.db!r}: {error}")


def _held(operation: Operation, rows: Any) -> int:
    """Return for how many of ``rows``, to which it has been done, it waits for the end of their lease."""
    if operation.later is None:
        return 0
    with contextlib.suppress(DatabaseError, InterfaceError):  # it is done: no reason to say that it is not
        return int(rows.draining().filter(status=operation.status).count())
    return 0


def _action_of(operation: Operation) -> Callable[..., HttpResponse | None]:
    def action(page: Operating, request: HttpRequest, rows: Any) -> HttpResponse | None:
        return page.operate(request, rows, operation, back=request.get_full_path())

    return action
