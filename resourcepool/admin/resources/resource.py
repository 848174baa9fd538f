"""Resources in the admin: who has what, and until when. A running lease cannot be changed here, only taken away."""

from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables

from resourcepool.admin import describe
from resourcepool.admin.activity import ActivityAdminMixin
from resourcepool.admin.columns import datetime_column, duration_column
from resourcepool.admin.resources import columns
from resourcepool.admin.resources.columns import Columns
from resourcepool.admin.resources.csv_export import export
from resourcepool.admin.resources.deletion import DeletionMixin
from resourcepool.admin.resources.filters import HolderFilter, HostFilter, StateFilter, TagFilter, VerdictFilter
from resourcepool.admin.resources.operations import ResourceOperationsMixin
from resourcepool.dialect import DbNow
from resourcepool.history.leaks import leak_events
from resourcepool.resources.state import state_of
from resourcepool.status.search import named


class ResourceAdmin(ActivityAdminMixin, DeletionMixin, Columns, ResourceOperationsMixin):
    """The base for the admin of your own resource models.

    The page of one says what it is doing, what can be done, and what has happened.
    """

    change_form_template = "resourcepool/admin/resource.html"
    list_filter: ClassVar[tuple[Any, ...]] = (StateFilter, VerdictFilter, TagFilter, HolderFilter, HostFilter)
    sortable_by = ("expires_in", "fence")  # 100,000 texts take too long to sort
    search_fields: ClassVar[tuple[str, ...]] = ("holder", "tags")
    search_help_text = _(
        "A number, or an address as one pastes it, shows that resource; other words, what contains them."
    )
    readonly_fields: ClassVar[Any] = (
        *("holder", datetime_column("busy_before", _("busy before")), "fence", "in_service"),
        *(columns.status, columns.reason, columns.until, "strikes", "verdict"),
        *(datetime_column("checked_at", _("checked at")), duration_column("latency", _("latency"))),
    )
    actions: Any = (export,)  # besides the operations

    class Media:
        js = ("resourcepool/admin.js",)

    def get_queryset(self, request: HttpRequest) -> Any:
        """Return the rows together with the database's clock, by which their state is judged."""
        return super().get_queryset(request).annotate(db_now=DbNow())

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        """Find the resource that the term names; if there is none, resources that contain its describe."""
        condition = named(self.model, search_term.strip()) if search_term.strip() else None
        if condition is not None and (exactly := queryset.filter(condition)).exists():
            return exactly, False
        return super().get_search_results(request, queryset, search_term)

    @method_decorator(sensitive_post_parameters())
    @sensitive_variables()
    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Keep what was typed in, which may be a password, out of error reports."""
        return super().changeform_view(request, *args, **kwargs)

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        more, state = super().page_context(request, row), state_of(row, row.db_now)
        leaks = leak_events(row) if state in describe.HELD else []
        said = [*describe.sentences(row, state, row.db_now, row.begun), *map(describe.of_the_leak, leaks)]
        return more | {"subtitle": describe.title_of(row), "state": self.state(row), "sentences": said}
