"""Admin pages of locks, semaphores, read-write locks, conditions and barriers: a list of names, a page for each."""

from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.auth import get_permission_codename
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import router
from django.db.models import BooleanField, Exists, F, OuterRef, Value
from django.db.models.functions import Concat, Substr
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.text import capfirst

from resourcepool.admin.base import ExactSearchMixin, ReadOnlyAdmin
from resourcepool.admin.columns import lines
from resourcepool.admin.events import ActivityAdminMixin
from resourcepool.admin.filters import choice_filter
from resourcepool.admin.operations_mixin import OperationsAdminMixin
from resourcepool.dashboard.links import Links, can_view
from resourcepool.exceptions import BadOption
from resourcepool.history.models import Event
from resourcepool.locks.models import (
    NUMBER_MARK,
    Barrier,
    ConditionWaiter,
    Lock as LockRow,
    RWLockPermit,
    SemaphorePermit,
)
from resourcepool.locks.registry import parse_holder
from resourcepool.operations import Operation
from resourcepool.operations.locks import REMOVE_BARRIER, RESIZE, REVOKE, REVOKE_HOLDER, holding_names
from resourcepool.operations.operation import by_name
from resourcepool.status.locks.cycles import KINDS, cycles, lock_badge, short_holder
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.lock_status import (
    BARRIER_ROW,
    MAX_HOLDERS,
    LockStatus,
    Page,
    lock_named,
    locks,
    status_of,
)
from resourcepool.status.locks.summary import held_by, lock_facts, past_text
from resourcepool.status.times import duration
from resourcepool.translation import gettext, gettext_lazy as _, ngettext
from resourcepool.waiting.models import Ticket, pool_name

MAX_HOLDERS_SHOWN = 3  # in a list
MAX_ROWS_EXPLAINED = 20  # names whose holders' other locks are listed before revoking


def _in_status(rows: Any, status: str) -> Any:
    if status == "held":
        return rows.filter(holding_names(rows.model))
    pool = Concat(Value(f"{pool_name(rows.model)}:"), OuterRef("name"))
    return rows.filter(Exists(Ticket.objects.waiting().filter(pool=pool))) if status == "waited" else rows


StatusFilter = choice_filter(
    "status", _("state"), [("held", _("held")), ("waited", _("has waiters"))], _in_status
)


class NamedAdmin(ExactSearchMixin, ActivityAdminMixin, ReadOnlyAdmin, OperationsAdminMixin):
    """Admin pages of one ``kind`` of lock."""

    kind: ClassVar[LockKind]
    list_display = ("name", "status_badge", "held_by", "waiting", "highest_fence")
    fields: ClassVar[Any] = ("name",)
    list_filter = (StatusFilter,)
    search_fields = ("name__begins",)
    search_help_text = _("Start of the name (case-sensitive).")
    ordering = ("name",)
    actions = ()
    operations = by_name(REVOKE, REVOKE_HOLDER)

    def get_queryset(self, request: HttpRequest) -> Any:
        """Return one row per name, and whether it is held. Wait cycles name other kinds: they need all permissions."""
        sees_all_kinds = all(can_view(self.admin_site, request, kind.model) for kind in KINDS)
        notes = {"sees_all_kinds": Value(sees_all_kinds, BooleanField()), "is_held": holding_names(self.model)}
        rows = super().get_queryset(request).annotate(**notes)
        return rows.filter(key=Concat(F("name"), Value(f"{NUMBER_MARK}0"))) if self.kind.has_permits else rows

    def has_operate_all_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether this user may operate on locks of all kinds."""
        metas = [kind.model._meta for kind in KINDS]
        permissions = [f"{meta.app_label}.{get_permission_codename('operate', meta)}" for meta in metas]
        return request.user.has_perms(permissions) and all(
            can_view(self.admin_site, request, kind.model) for kind in KINDS
        )

    def confirmation_context(self, request: HttpRequest, chosen: Any, operation: Operation) -> dict[str, Any]:
        """Add the holders; for all that they hold, their other locks."""
        context = super().confirmation_context(request, chosen, operation)
        if operation in (REVOKE, REVOKE_HOLDER):
            names = [row.name for row in chosen.rows[:MAX_ROWS_EXPLAINED]]
            statuses = status_of(self.kind, names, holders=MAX_HOLDERS).values()
            holdings = [(holding.holder, status.called) for status in statuses for holding in status.in_use]
            if operation is REVOKE_HOLDER:
                processes = {parse_holder(holder)[0] for holder, _called in holdings}
                holdings = [(one.who, one.called) for one in held_by(processes)]
            text = gettext("%(holder)s holds %(held)s")
            context["listed"] += [
                text % {"holder": holder, "held": called} for holder, called in holdings[:MAX_HOLDERS]
            ]
        return context

    def events_of(self, row: Any) -> Any:
        """Return the events of all rows of the name, by number: the fences of several rows have no common order."""
        if not self.kind.has_permits:
            return super().events_of(row)
        begins = f"{row.name}{NUMBER_MARK}"
        events = Event.objects.using(router.db_for_read(Event))
        events = events.filter(pool=row._meta.label_lower, row__begins=begins)
        # Rows of a name "a#b" start like rows of "a".
        events = events.annotate(number=Substr("row", len(begins) + 1)).exclude(number__contains=NUMBER_MARK)
        return events.order_by("-pk")

    def title_of(self, row: Any) -> str:
        return self.kind.called(row.name)

    def display_name(self, row: Any) -> str:
        return str(row.name)

    def load_column_values(self, rows: Any) -> None:
        statuses = status_of(self.kind, [row.name for row in rows]) if rows else {}
        for row in rows:
            row.status = statuses[row.name]
        self._note_cycles(rows)

    def load_page_values(self, row: Any) -> None:
        """Read its full status, with all holders and waiters."""
        row.status = next(iter(lock_named(row.name, self.kind)), LockStatus(self.kind, row.name))
        self._note_cycles([row])

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Add its state, all holders, waiters and deadlocks."""
        context = super().page_context(request, row)
        facts = [("fact", *fact) for fact in lock_facts(row.status, row.cycles)]
        return context | {"state": self.status_badge(row), "facts": facts}

    def _note_cycles(self, rows: Any) -> None:
        """Set ``cycles`` on each row: its wait cycles, if the user may see them."""
        wait_cycles = cycles() if any(row.sees_all_kinds and row.status.waiters for row in rows) else []
        for row in rows:
            row.cycles = [cycle for cycle in wait_cycles if cycle.is_about(self.kind, row.name)]

    @admin.display(description=_("state"))
    def status_badge(self, row: Any) -> str:
        one: LockStatus = row.status
        state = lock_badge(one, row.cycles).html
        if not self.kind.has_permits:
            return state
        count = gettext("%(held)d of %(permits)d held") % {"held": one.held, "permits": one.permits}
        beyond = gettext("%d above the limit until released") % (one.held - one.permits)
        return lines(state, count, beyond if one.held > one.permits else "")

    @admin.display(description=_("holder"))
    def held_by(self, row: Any) -> str:
        one: LockStatus = row.status
        more = ".." if len(one.in_use) > MAX_HOLDERS_SHOWN else ""
        holders = (short_holder(held.holder) for held in one.in_use[:MAX_HOLDERS_SHOWN])
        return lines("", *holders, more, past_text(one))

    @admin.display(description=_("waiters"))
    def waiting(self, row: Any) -> str:
        one: LockStatus = row.status
        if one.longest_wait is None:
            return ""
        count = ngettext("%d waiter", "%d waiters", one.waiters) % one.waiters
        first = ngettext("for %s", "the first for %s", one.waiters)
        return lines(count, first % duration(one.longest_wait))

    @admin.display(description=_("fence"))
    def highest_fence(self, row: Any) -> Any:
        return row.status.fence


@admin.register(LockRow)
class LockAdmin(NamedAdmin):
    kind = LockKind.LOCK


@admin.register(SemaphorePermit)
class SemaphoreAdmin(NamedAdmin):
    kind = LockKind.SEMAPHORE
    operations = by_name(REVOKE, REVOKE_HOLDER, RESIZE)


@admin.register(RWLockPermit)
class RWLockAdmin(NamedAdmin):
    kind = LockKind.RWLOCK


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
        context = {**self.buttons_for(request, one), "badge": lock_badge(one), "facts": lock_facts(one)}
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
