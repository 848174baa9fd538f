"""Admin pages of conditions and barriers: waiters and notified waiters. Names without rows have pages, too."""

from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.text import capfirst

from resourcepool.admin.base import ReadOnlyAdmin
from resourcepool.admin.operations_mixin import OperationsAdminMixin
from resourcepool.dashboard.links import Links
from resourcepool.exceptions import BadOption
from resourcepool.locks.models import Barrier, ConditionWaiter
from resourcepool.operations.locks import REMOVE_BARRIER
from resourcepool.operations.operation import by_name
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.lock_status import BARRIER_ROW, LockStatus, Page, lock_named, locks

QUERY = {"q", "after"}


class WaitedNameAdmin(ReadOnlyAdmin):
    """A list of names and a page for each, found by name instead of by primary key."""

    actions = ()
    kind: ClassVar[LockKind]
    list_template, page_template = "resourcepool/admin/conditions.html", "resourcepool/admin/condition.html"

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        self._check(request)
        if unknown := set(request.GET) - QUERY:
            raise SuspiciousOperation(
                f"unknown parameters: {sorted(unknown)}"
            )  # answered by 400, as in other lists
        prefix = request.GET.get("q", "").strip()
        try:
            after = request.GET.get("after", "")
            page = locks(kind=self.kind, prefix=prefix, after=after, limit=self.list_per_page)
        except BadOption:
            page = Page([], "")
        links = Links(self.admin_site, request)
        rows = [(one, links.change_page(self.model, one.name)) for one in page.locks]
        context = {"rows": rows, "prefix": prefix, "after": page.after, "kind": self.kind}
        return self.render_page(request, self.list_template, self._title, **context)

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        self._check(request)
        statuses = lock_named(unquote(object_id or ""), self.kind)
        if not statuses:
            raise Http404
        (one,) = statuses
        context = {"one": one, **self.buttons_for(request, one)}
        return self.render_page(request, self.page_template, one.called, **context)

    def buttons_for(self, request: HttpRequest, one: LockStatus) -> dict[str, Any]:
        """Return what the template needs for the buttons of operations."""
        return {}

    @property
    def _title(self) -> str:
        return str(capfirst(self.opts.verbose_name_plural))

    def _check(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied


@admin.register(ConditionWaiter)
class ConditionAdmin(WaitedNameAdmin):
    kind = LockKind.CONDITION


@admin.register(Barrier)
class BarrierAdmin(WaitedNameAdmin, OperationsAdminMixin):
    kind = LockKind.BARRIER
    operations = by_name(REMOVE_BARRIER)

    def buttons_for(self, request: HttpRequest, one: LockStatus) -> dict[str, Any]:
        row = self.get_object(request, Barrier.own_key(one.name))
        return self.page_context(request, row) if row else {}

    def get_queryset(self, request: HttpRequest) -> Any:
        """Return the barriers, without the rows of their notified waiters."""
        return super().get_queryset(request).filter(BARRIER_ROW)

    def operate_view(self, request: HttpRequest, object_id: str, name: str, back: str = "") -> HttpResponse:
        """Redirect to the list afterwards, because a removed barrier has no page."""
        return super().operate_view(request, object_id, name, back=self.page_url("changelist"))

    def display_name(self, row: Any) -> str:
        return self.kind.called(row.name)
