"""Base pages of systems with named rows, of containers (streams, topics ..) and of the work in them (tasks, timers)."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django.contrib import admin
from django.db import router
from django.db.models import BooleanField, Exists, OuterRef, Value
from django.http import HttpRequest
from django.utils.html import format_html_join

from resourcepool.admin.base import BaseAdmin, ExactSearchMixin, ReadOnlyAdmin
from resourcepool.admin.columns import lines, link_to_list, link_to_page
from resourcepool.admin.events import ActivityAdminMixin
from resourcepool.admin.operations_mixin import OperationsAdminMixin
from resourcepool.dashboard.links import can_view
from resourcepool.events import localized
from resourcepool.operations.operation import by_name
from resourcepool.operations.taskqueue import DISCARD, PAUSE, RESUME, RETRY
from resourcepool.signals import EventKind, RowEvent, emit
from resourcepool.status.badge import work_badge
from resourcepool.status.system import SEPARATOR, Figure, NamedSystem, figure_text
from resourcepool.templatetags.resourcepool_dashboard import code_spans
from resourcepool.translation import gettext, gettext_lazy as _

FIRST = 5  # tasks, timers or subscriptions on the page of their container


class SystemAdminMixin(BaseAdmin):
    """Pages of the rows of a system, with the figures that it declares for all surfaces.

    Attributes:
        more_facts: further columns.
    """

    system: ClassVar[NamedSystem]
    more_facts: ClassVar[tuple[str, ...]] = ()

    @property
    def facts(self) -> Sequence[Any]:  # type: ignore[override]
        """The status, and a column for each figure but the name and the status."""
        figures = [self._column(n, *figure) for n, figure in enumerate(self.system.figures_of_pages[2:])]
        return ("status_badge", *figures, *self.more_facts)

    def get_list_display(self, request: HttpRequest) -> Any:
        return (self.opts.pk.name, *self.facts)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.get_list_display(request)

    def load_column_values(self, rows: Any) -> None:
        names = [row.pk for row in rows]
        statuses = {status.name: status for status in self.system.reader.named(*names)} if names else {}
        for row in rows:
            row.status = statuses[row.pk]

    @admin.display(description=_("status"))
    def status_badge(self, row: Any) -> str:
        return lines(row.status.badge.html, code_spans(row.status.explanation))

    def _column(self, number: int, heading: Any, figure: Figure) -> Any:
        def shown(row: Any) -> str:
            text = figure_text(figure, row.status)
            if figure.rows is None:
                return text
            first, *others = text.split(SEPARATOR)
            filters = figure.rows.filters_of(self.system.word, row.pk)
            parts = [link_to_list(self.admin_site, figure.rows.model, first, **filters), *others]
            return format_html_join(SEPARATOR, "{}", ((part,) for part in parts))

        shown.__name__ = f"figure_{number}"  # Django derives the CSS class from it
        return admin.display(description=heading)(shown)


class SystemAdmin(SystemAdminMixin, ReadOnlyAdmin):
    """A read-only list and page of the rows of a system, by name."""

    ordering = ("pk",)


class OperatedSystemAdmin(SystemAdmin, OperationsAdminMixin):
    """The same, with the operations of the system."""

    actions = ()

    def get_list_display(self, request: HttpRequest) -> Any:
        return [*super().get_list_display(request), *self.operations_column(request)]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (self.opts.pk.name, *self.facts)


class ProtectedAdminMixin(BaseAdmin):
    """Rows that cannot be deleted while others belong to them, which may be too many to list."""

    def protecting(self) -> dict[Any, str]:
        """Return {model of the others: their field with the row}, which is also the filter of their list."""
        raise NotImplementedError

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return what Django asks about."""
        rows = self.model.objects.using(router.db_for_write(self.model)).filter(pk__in=[obj.pk for obj in objs])
        text = gettext("%(name)s has %(work)s")
        protected = [
            link_to_list(
                self.admin_site,
                model,
                text % {"name": row, "work": model._meta.verbose_name_plural},
                **{field: row},
            )
            for model, field in self.protecting().items()
            for row in rows.filter(Exists(model.objects.filter(**{field: OuterRef("pk")})))
        ]
        return ([], {}, set(), protected) if protected else super().get_deleted_objects(objs, request)


class ContainerAdmin(SystemAdminMixin, ProtectedAdminMixin, ActivityAdminMixin, OperationsAdminMixin):
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
    search_fields = ordering = ("name",)
    operations = by_name(PAUSE, RESUME)

    @property
    def work_model(self) -> Any:
        """The model of its tasks, timers or subscriptions."""
        return self.system.details[0]

    def protecting(self) -> dict[Any, str]:
        return {self.work_model: self.system.word}

    def get_list_display(self, request: HttpRequest) -> Any:
        return (*super().get_list_display(request), *self.operations_column(request))

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
        super().load_column_values(rows)
        for row in rows:
            if not getattr(row, "shows_work", False):
                row.status = row.status.redacted()


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
        return work_badge(row).html
