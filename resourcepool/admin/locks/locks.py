"""Locks, semaphores and read-write locks in the admin: a line for each name, a page with its holders and its line."""

from dataclasses import asdict
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.auth import get_permission_codename
from django.db import router
from django.db.models import BooleanField, Exists, F, OuterRef, Value
from django.db.models.functions import Concat, Substr
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.activity import ActivityAdminMixin
from resourcepool.admin.base import ExactSearchMixin, ReadOnlyAdmin
from resourcepool.admin.columns import badge, lines
from resourcepool.admin.filters import choice_filter
from resourcepool.admin.operations_mixin import OperationsAdminMixin
from resourcepool.dashboard.access import can_view
from resourcepool.history.models import Event
from resourcepool.locks.models import NUMBER_MARK, RWLockPermit, SemaphorePermit
from resourcepool.locks.models import Lock as LockRow
from resourcepool.locks.registry import parse_holder
from resourcepool.operations import Operation
from resourcepool.operations.locks import RESIZE, REVOKE, REVOKE_HOLDER
from resourcepool.operations.operation import by_name
from resourcepool.status.locks.cycles import KINDS, cycles, short_holder
from resourcepool.status.locks.held_by_process import held_by
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.locks.lock_status import MAX_HOLDERS, LockStatus, lock_named, statuses_of
from resourcepool.status.snapshots import duration
from resourcepool.waiting.models import Ticket, pool_name

MAX_HOLDERS_SHOWN = 3  # holders in a list
MAX_ROWS_EXPLAINED = 20  # names whose holders are told before these are freed


def _standing(rows: Any, wanted: str) -> Any:
    if wanted == "held":
        return rows.filter(Exists(rows.model.objects.held().filter(name=OuterRef("name"))))
    line = Concat(Value(f"{pool_name(rows.model)}:"), OuterRef("name"))
    return rows.filter(Exists(Ticket.objects.waiting().filter(pool=line))) if wanted == "waited" else rows


StatusFilter = choice_filter(
    "status", _("state"), [("held", _("held")), ("waited", _("waited for"))], _standing
)


class NamedAdmin(ExactSearchMixin, ActivityAdminMixin, ReadOnlyAdmin, OperationsAdminMixin):
    """The page of one ``kind`` of lock."""

    kind: ClassVar[LockKind]
    list_display = ("name", "status_badge", "held_by", "waiting", "highest_fence")
    fields = ("name", "status_badge", "holders", "line", "wait_cycles", "highest_fence")
    list_filter = (StatusFilter,)
    search_fields = ("name__begins",)
    search_help_text = _("How the name begins; upper and lower case differ.")
    ordering = ("name",)
    actions = ()
    operations = by_name(REVOKE, REVOKE_HOLDER)

    def get_queryset(self, request: HttpRequest) -> Any:
        """Return a row for each name: its first, where it has several; deadlocks name locks of other kinds."""
        sees_all_kinds = all(can_view(self.admin_site, request, kind.model) for kind in KINDS)
        rows = super().get_queryset(request).annotate(sees_all_kinds=Value(sees_all_kinds, BooleanField()))
        return rows.filter(key=Concat(F("name"), Value(f"{NUMBER_MARK}0"))) if self.kind.has_permits else rows

    def has_operate_all_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell whether this user may operate on names of all kinds."""
        options = [kind.model._meta for kind in KINDS]
        names = [f"{one.app_label}.{get_permission_codename('operate', one)}" for one in options]
        return request.user.has_perms(names) and all(
            can_view(self.admin_site, request, kind.model) for kind in KINDS
        )

    def confirmation_context(
        self, request: HttpRequest, chosen: list[Any], operation: Operation
    ) -> dict[str, Any]:
        """Add the other locks of these holders."""
        told = super().confirmation_context(request, chosen, operation)
        if operation is REVOKE_HOLDER:
            found = statuses_of(
                self.kind, [row.name for row in chosen[:MAX_ROWS_EXPLAINED]], holders=MAX_HOLDERS
            )
            holders = {held.holder for one in found.values() for held in one.in_use}
            theirs = held_by(parse_holder(holder)[0] for holder in holders)
            text = gettext("%(holder)s holds %(held)s")
            told["listed"] += [text % {"holder": one.who, "held": one.called} for one in theirs[:MAX_HOLDERS]]
        return told

    def events_of(self, row: Any, before: tuple[int, int] | None) -> Any:
        """Return what happened to all rows of the name; several have fences in no order, so only the number counts."""
        if not self.kind.has_permits:
            return super().events_of(row, before)
        begins = f"{row.name}{NUMBER_MARK}"
        events = Event.objects.using(router.db_for_read(Event))
        events = events.filter(pool=row._meta.label_lower, row__begins=begins)
        # What is called "a#b" begins like "a".
        events = events.annotate(number=Substr("row", len(begins) + 1)).exclude(number__contains=NUMBER_MARK)
        return (events.filter(pk__lt=before[1]) if before else events).order_by("-pk")

    def title_of(self, row: Any) -> str:
        return self.kind.called(row.name)

    def display_name(self, row: Any) -> str:
        return str(row.name)

    def load_column_values(self, rows: Any) -> None:
        found = statuses_of(self.kind, [row.name for row in rows]) if rows else {}
        for row in rows:
            row.status = found[row.name]
        self._note_cycles(rows)

    def load_page_values(self, row: Any) -> None:
        """Read its status, with all holders and waiters."""
        row.status = next(iter(lock_named(row.name, self.kind)), LockStatus(self.kind, row.name))
        self._note_cycles([row])

    def _note_cycles(self, rows: Any) -> None:
        """Set ``cycles`` on each row, as far as the user may see them: the circles that it is part of."""
        found = cycles() if any(row.sees_all_kinds and row.status.waiters for row in rows) else []
        for row in rows:
            row.cycles = [one for one in found if one.is_about(self.kind, row.name)]

    @admin.display(description=_("state"))
    def status_badge(self, row: Any) -> str:
        one: LockStatus = row.status
        if any(circle.is_certain for circle in row.cycles):
            state = badge("quarantined", gettext("deadlock"))
        elif one.held:
            state = badge("leased", gettext("held") if one.held >= one.permits else gettext("partly held"))
        elif one.permits:
            state = badge("free", gettext("free"))
        else:
            state = badge("quarantined", gettext("no permits"))
        if not self.kind.has_permits:
            return state
        count = gettext("%(held)d of %(permits)d held") % {"held": one.held, "permits": one.permits}
        beyond = gettext("%d too many, until they are released") % (one.held - one.permits)
        return lines(state, count, beyond if one.held > one.permits else "")

    @admin.display(description=_("holder"))
    def held_by(self, row: Any) -> str:
        one: LockStatus = row.status
        more = ".." if len(one.in_use) > MAX_HOLDERS_SHOWN else ""
        return lines("", *(short_holder(held.holder) for held in one.in_use[:MAX_HOLDERS_SHOWN]), more)

    @admin.display(description=_("waiting"))
    def waiting(self, row: Any) -> str:
        one: LockStatus = row.status
        if one.longest_wait is None:
            return ""
        count = ngettext("%d waits", "%d wait", one.waiters) % one.waiters
        first = ngettext("for %s", "the first for %s", one.waiters)
        return lines(count, first % duration(one.longest_wait))

    @admin.display(description=_("holders"))
    def holders(self, row: Any) -> str:
        text = gettext("%(holder)s: fence %(fence)d, runs out in %(left)s unless renewed")
        if self.kind.has_permits:
            text = gettext("%(holder)s: %(permits)d, fence %(fence)d, runs out in %(left)s unless renewed")
        so_far = gettext("%(holder)s: has got %(permits)d so far, and waits for more")
        told = [
            (so_far if one.is_waiting else text) % {**asdict(one), "left": duration(one.expires_in)}
            for one in row.status.holders
        ]
        return lines("", *told) if told else gettext("nobody holds it")

    @admin.display(description=_("in line"))
    def line(self, row: Any) -> str:
        """Show who waits, the first to be served first."""
        text = gettext("%(holder)s: for %(waited)s")
        if self.kind.has_permits:
            text = gettext("%(holder)s: wants %(permits)d, for %(waited)s")
        told = [text % {**asdict(one), "waited": duration(one.waited)} for one in row.status.line]
        return lines("", *told) if told else gettext("nobody waits")

    @admin.display(description=_("wait_cycles"))
    def wait_cycles(self, row: Any) -> str:
        told = [gettext("deadlock: %s") % one.said if one.is_certain else one.said for one in row.cycles]
        return lines("", *told) if told else gettext("none")

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
