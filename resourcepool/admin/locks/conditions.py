"""Conditions and barriers in the admin: who waits, and who was notified. Nobody holds them, so most have no row."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.text import capfirst

from resourcepool.admin.base import ReadOnlyAdmin
from resourcepool.admin.operations_mixin import OperationsAdminMixin
from resourcepool.dashboard.links import Links
from resourcepool.exceptions import BadOption
from resourcepool.locks.conditions.barrier import PREFIX
from resourcepool.locks.models import Notification
from resourcepool.operations.locks import REMOVE_BARRIER
from resourcepool.operations.operation import by_name
from resourcepool.status.locks.conditions import KINDS, place_of, put
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.lock_status import BARRIER_ROW, Page, lock_named, locks

ASKED = {"q", "after"}


@admin.register(Notification)
class ConditionAdmin(ReadOnlyAdmin, OperationsAdminMixin):
    """A line for each name that is waited for, or that stands; a page with its line. The address has kind and name."""

    actions = ()
    operations = by_name(REMOVE_BARRIER)
    list_template, page_template = "resourcepool/admin/conditions.html", "resourcepool/admin/condition.html"

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        self._check(request)
        if odd := set(request.GET) - ASKED:
            raise SuspiciousOperation(f"not asked for: {sorted(odd)}")  # answered by 400, as in other lists
        prefix = request.GET.get("q", "").strip()
        try:
            after = request.GET.get("after", "")
            page = locks(kind=KINDS, prefix=prefix, after=after, limit=self.list_per_page)
        except BadOption:
            page = Page([], "")
        links = Links(self.admin_site, request)
        rows = [(one, links.change_page(Notification, put(one.kind, one.name))) for one in page.locks]
        told = {"rows": rows, "prefix": prefix, "after": page.after}
        title = str(capfirst(self.opts.verbose_name_plural))
        return self.render_page(request, self.list_template, title, **told)

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        self._check(request)
        place = place_of(unquote(object_id or ""))
        found = lock_named(place[1], place[0]) if place else []
        if not found:
            raise Http404
        key = Notification.key_of(found[0].kind.stored(found[0].name), 0)
        row = self.get_object(request, key)
        about = self.page_context(request, row) if row else {}
        return self.render_page(request, self.page_template, found[0].called, one=found[0], **about)

    def get_queryset(self, request: HttpRequest) -> Any:
        """Return the rows that operations can change: those of barriers."""
        return super().get_queryset(request).filter(BARRIER_ROW, name__begins=PREFIX)

    def operate_view(self, request: HttpRequest, object_id: str, name: str, back: str = "") -> HttpResponse:
        """Ask, do it, and go to the list: a removed barrier has no page."""
        return super().operate_view(request, object_id, name, back=self.page_url("changelist"))

    def display_name(self, row: Any) -> str:
        return LockKind.BARRIER.called(row.name.removeprefix(PREFIX))

    def _check(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied
