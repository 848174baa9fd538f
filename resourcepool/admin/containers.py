"""Base pages for containers (streams, dispensers, topics, channels) and for the work in them (tasks, timers)."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django.contrib import admin
from django.db import router
from django.db.models import BooleanField, Exists, OuterRef, Value
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from resourcepool.admin.base import ExactSearchMixin, ReadOnlyAdmin
from resourcepool.admin.columns import badge, lines, link_to_list, link_to_page
from resourcepool.admin.events import ActivityAdminMixin
from resourcepool.admin.operations_mixin import OperationsAdminMixin
from resourcepool.dashboard.access import can_view
from resourcepool.events import localized
from resourcepool.operations.operation import by_name
from resourcepool.operations.taskqueue import DISCARD, PAUSE, RESUME, RETRY
from resourcepool.signals import EventKind, RowEvent, emit
from resourcepool.status.badge import work_badge
from resourcepool.status.system import NamedSystem
from resourcepool.templatetags.resourcepool_dashboard import code_spans
from resourcepool.translation import gettext, gettext_lazy as _

FIRST = 5  # tasks, timers or subscriptions on the page of their container


class ContainerAdmin(ActivityAdminMixin, OperationsAdminMixin):
    """Pages of a container: its settings can be edited; its work has its own list.

    Attributes:
        settings: the fields of its settings.
        work_title: the heading of ``first_work`` on the page.
        system: its system; ``details`` of that begins with the model of its tasks or timers.
        can_be_added: False if programs create it on first use.
    """

    can_be_added = False
    has_settings = True
    settings: ClassVar[tuple[str, ...]]
    work_title: ClassVar[Any]
    system: ClassVar[NamedSystem]
    search_fields = ordering = ("name",)
    operations = by_name(PAUSE, RESUME)

    @property
    def work_model(self) -> Any:
        """The model of its tasks, timers or subscriptions."""
        return self.system.details[0]

    def get_list_display(self, request: HttpRequest) -> Any:
        return ("name", *self.facts, *self.operations_column(request))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("name", *self.settings)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the fields that no form changes; programs refer to a container by its name."""
        return ("name",) if obj else ()

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return self.can_be_added and super().has_add_permission(request, *args)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Save it, and record in the history that it was paused or resumed."""
        super().save_model(request, obj, form, change)
        if change and "is_paused" in form.changed_data:
            what, fence = EventKind.PAUSED if obj.is_paused else EventKind.RESUMED, getattr(obj, "fence", 0)
            emit(RowEvent(what, self.model, obj._state.db, obj.pk, fence, actor=request.user.get_username()))

    def get_queryset(self, request: HttpRequest) -> Any:
        """Return the rows, annotated with whether the user may see names and errors of their work."""
        shows_work = Value(can_view(self.admin_site, request, self.work_model), BooleanField())
        return super().get_queryset(request).annotate(shows_work=shows_work)

    def first_work(self, row: Any, work: Any) -> Any:
        """Return the ``work`` of ``row`` in the order in which an operator looks at it."""
        raise NotImplementedError

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Add the first tasks, timers or subscriptions, with their buttons."""
        context, model = super().page_context(request, row), self.work_model
        if not can_view(self.admin_site, request, model) or not self.admin_site.is_registered(model):
            return context
        page: Any = self.admin_site.get_model_admin(model)
        of_row = page.get_queryset(request).filter(**{self.system.word: row.pk})
        rows = list(self.first_work(row, of_row)[:FIRST])
        work = [
            (
                link_to_page(self.admin_site, model, each.pk, getattr(each, page.search_fields[0])),
                page.status_badge(each),
                localized(getattr(each, "outcome", "")),
                page.row_buttons(request, each),
            )
            for each in rows
        ]
        return context | {"work": work, "work_title": self.work_title}

    def load_column_values(self, rows: Any) -> None:
        statuses = (
            {status.name: status for status in self.system.reader.named(*(row.name for row in rows))}
            if rows
            else {}
        )
        for row in rows:
            status = statuses[row.name]
            row.status = status if getattr(row, "shows_work", False) else status.redacted()

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return what Django asks about; a container with work is protected, and its work may be too much to list."""
        rows = self.model.objects.using(router.db_for_write(self.model)).filter(pk__in=[obj.pk for obj in objs])
        with_work = rows.filter(Exists(self.work_model.objects.filter(**{self.system.word: OuterRef("pk")})))
        text, work = gettext("%(name)s has %(work)s"), self.work_model._meta.verbose_name_plural
        names = with_work.values_list("pk", flat=True)
        if protected := [self.link_to_work(name, text % {"name": name, "work": work}) for name in names]:
            return [], {}, set(), protected
        return super().get_deleted_objects(objs, request)

    def link_to_work(self, name: str, text: object, **filters: object) -> SafeString | str:
        """Return ``text`` as a link to the filtered list of the work in the container ``name``."""
        return link_to_list(self.admin_site, self.work_model, text, **{self.system.word: name}, **filters)

    @admin.display(description=_("status"))
    def status_badge(self, row: Any) -> str:
        return lines(badge(row.status.badge), code_spans(row.status.explanation))

    @admin.display(description=_("finished"))
    def finished(self, row: Any) -> str:
        counts = gettext("%(done)d done, %(failed)d failed in the last minute")
        dead = self.link_to_work(row.name, row.status.dead, status="dead")
        dead_letter = format_html("{} {}", dead, gettext("dead-letter")) if row.status.dead else ""
        return lines(counts % {"done": row.status.done, "failed": row.status.failed}, dead_letter)


class WorkAdmin(ExactSearchMixin, ActivityAdminMixin, ReadOnlyAdmin, OperationsAdminMixin):
    """Lists of tasks or timers, newest first.

    Attributes:
        filtered_ordering: the ordering by value of the filter "status"; only within one container, where an index
            supports it.
    """

    actions = ()
    operations = by_name(RETRY, DISCARD)
    filtered_ordering: ClassVar[dict[str, Sequence[Any]]] = {}

    def get_ordering(self, request: HttpRequest) -> Any:
        container = self.model.key_columns[0].removesuffix("_id")
        status = request.GET.get("status", "") if request.GET.get(container) else ""
        return self.filtered_ordering.get(status) or super().get_ordering(request)

    @admin.display(description=_("state"))
    def status_badge(self, row: Any) -> str:
        return badge(work_badge(row))
