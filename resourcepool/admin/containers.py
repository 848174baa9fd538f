"""The bases of pages of places (streams, dispensers, topics, channels), and of the work in them (tasks, timers)."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django.contrib import admin
from django.db import router
from django.db.models import BooleanField, Exists, OuterRef, Value
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.activity import ActivityAdminMixin
from resourcepool.admin.base import ExactSearchMixin, ReadOnlyAdmin
from resourcepool.admin.columns import badge, lines, link_to_list
from resourcepool.admin.operations_mixin import OperationsAdminMixin
from resourcepool.dashboard.access import can_view
from resourcepool.operations.operation import by_name
from resourcepool.operations.taskqueue import DISCARD, PAUSE, RESUME, RETRY
from resourcepool.signals import EventKind, RowEvent, emit
from resourcepool.templatetags.resourcepool_dashboard import code_spans

CSS = {"ready": "free", "pending": "free", "running": "leased", "assigned": "leased", "done": "free"}


class ContainerAdmin(ActivityAdminMixin, OperationsAdminMixin):
    """Settings are edited; the work has a list of its own."""

    can_be_added = False  # programs make it when they first use it
    settings: ClassVar[tuple[str, ...]]
    status_columns: ClassVar[tuple[str, ...]]  # columns, from the row's ``status``
    work: ClassVar[Any]  # the model of its tasks or timers
    place: ClassVar[str]  # the column of these that names it
    read: ClassVar[Any]  # returns the status of each of these names
    search_fields = ordering = ("name",)
    operations = by_name(PAUSE, RESUME)

    def get_list_display(self, request: HttpRequest) -> Any:
        return ("name", *self.status_columns)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("name", *self.settings, *(self.status_columns if obj else ()))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the fields that no form changes; programs know a place by its name."""
        return ("name", *self.status_columns) if obj else ()

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return self.can_be_added and super().has_add_permission(request, *args)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Save it, and tell the history when it was paused or resumed."""
        super().save_model(request, obj, form, change)
        if change and "is_paused" in form.changed_data:
            what, fence = EventKind.PAUSED if obj.is_paused else EventKind.RESUMED, getattr(obj, "fence", 0)
            emit(RowEvent(what, self.model, obj._state.db, obj.pk, fence, actor=request.user.get_username()))

    def get_queryset(self, request: HttpRequest) -> Any:
        """Return the rows, each with whether the names and errors of its work may be shown."""
        tells = Value(can_view(self.admin_site, request, self.work), BooleanField())
        return super().get_queryset(request).annotate(tells_work=tells)

    def load_column_values(self, rows: Any) -> None:
        found = {one.name: one for one in self.read(*(row.name for row in rows))} if rows else {}
        for row in rows:
            status = found[row.name]
            row.status = status if getattr(row, "tells_work", False) else status.redacted()

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return what Django asks about; a place that has work is not deleted, and the work may be too much to list."""
        rows = self.model.objects.using(router.db_for_write(self.model)).filter(pk__in=[one.pk for one in objs])
        used = rows.filter(Exists(self.work.objects.filter(**{self.place: OuterRef("pk")})))
        text, work = gettext("%(name)s has %(work)s"), self.work._meta.verbose_name_plural
        names = used.values_list("pk", flat=True)
        if kept := [self.link_to_work(name, text % {"name": name, "work": work}) for name in names]:
            return [], {}, set(), kept
        return super().get_deleted_objects(objs, request)

    def link_to_work(self, name: str, text: object, **wanted: object) -> SafeString | str:
        """Return ``text`` as a link to the work of the place of this name that is ``wanted``."""
        return link_to_list(self.admin_site, self.work, text, **{self.place: name}, **wanted)

    def badge_of(self, row: Any, status: Any) -> tuple[str, str]:
        """Return the state of ``row``: its class in the style sheet, and its text."""
        raise NotImplementedError

    @admin.display(description=_("status"))
    def status_badge(self, row: Any) -> str:
        return lines(badge(*self.badge_of(row, row.status)), code_spans(row.status.explanation))

    @admin.display(description=_("finished"))
    def finished(self, row: Any) -> str:
        told = gettext("%(done)d done, %(failed)d failed in the last minute")
        dead = self.link_to_work(row.name, row.status.dead, status="dead")
        waiting = format_html("{} {}", dead, gettext("dead-letter")) if row.status.dead else ""
        return lines(told % {"done": row.status.done, "failed": row.status.failed}, waiting)


class WorkAdmin(ExactSearchMixin, ActivityAdminMixin, ReadOnlyAdmin, OperationsAdminMixin):
    """The newest tasks or timers first; those of one place that are to begin are in the order in which they do.

    ``filtered_ordering``: {the value of the filter: the order}; only for one place, for which there is an index.
    """

    actions = ()
    operations = by_name(RETRY, DISCARD)
    css: ClassVar[dict[str, str]] = CSS
    filtered_ordering: ClassVar[dict[str, Sequence[Any]]] = {}

    def get_ordering(self, request: HttpRequest) -> Any:
        place = self.model.named_by[0].removesuffix("_id")
        wanted = request.GET.get("status", "") if request.GET.get(place) else ""
        return self.filtered_ordering.get(wanted) or super().get_ordering(request)

    @admin.display(description=_("state"))
    def state_badge(self, row: Any) -> str:
        other = "quarantined" if row.state in row.failed_states else "draining"
        return badge(self.css.get(row.state, other), row.get_state_display())
