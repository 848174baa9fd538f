"""Resources in the admin: who has what, and until when. A running lease cannot be changed here, only taken away."""

from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables

from resourcepool.admin import words
from resourcepool.admin.columns import moments, spans
from resourcepool.admin.resources import columns
from resourcepool.admin.resources.columns import Columns
from resourcepool.admin.resources.deleting import Deleting
from resourcepool.admin.resources.exporting import export
from resourcepool.admin.resources.filters import HolderFilter, HostFilter, StateFilter, TagFilter, VerdictFilter
from resourcepool.admin.resources.operating import Operating
from resourcepool.admin.timeline import Timelined
from resourcepool.dialect import DbNow
from resourcepool.history.leaks import told_of
from resourcepool.resources.state import state_of
from resourcepool.status.search import named


class ResourceAdmin(Timelined, Deleting, Columns, Operating):
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
        *("holder", moments("busy_before", _("busy before")), "fence", "in_service"),
        *(columns.status, columns.reason, columns.until, "strikes", "verdict"),
        *(moments("checked_at", _("checked at")), spans("latency", _("latency"))),
    )
    actions: Any = (export,)  # besides the operations

    class Media:
        js = ("resourcepool/admin.js",)

    def get_queryset(self, request: HttpRequest) -> Any:
        """Return the rows together with the database's clock, by which their state is judged."""
        return super().get_queryset(request).annotate(db_now=DbNow())

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        """Find the resource that the term names; if there is none, resources that contain its words."""
        condition = named(self.model, search_term.strip()) if search_term.strip() else None
        if condition is not None and (exactly := queryset.filter(condition)).exists():
            return exactly, False
        return super().get_search_results(request, queryset, search_term)

    @method_decorator(sensitive_post_parameters())
    @sensitive_variables()
    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Keep what was typed in, which may be a password, out of error reports."""
        return super().changeform_view(request, *args, **kwargs)

    def page_of(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        more, state = super().page_of(request, row), state_of(row, row.db_now)
        leaks = told_of(row) if state in words.HELD else []
        said = [*words.sentences(row, state, row.db_now, row.begun), *map(words.of_the_leak, leaks)]
        return more | {"subtitle": words.titled(row), "state": self.state(row), "sentences": said}
