"""Resources in the admin: holder, state and expiry. A running lease cannot be edited here, only revoked."""

from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables

from resourcepool.admin import describe
from resourcepool.admin.activity import ActivityAdminMixin
from resourcepool.admin.resources.columns import ResourceColumnsMixin
from resourcepool.admin.resources.csv_export import export
from resourcepool.admin.resources.deletion import DeletionMixin
from resourcepool.admin.resources.filters import HolderFilter, HostFilter, StateFilter, TagFilter, VerdictFilter
from resourcepool.admin.resources.import_pages import ImportMixin
from resourcepool.db.dialect import DbNow
from resourcepool.history.leaks import leak_events
from resourcepool.resources.state import state_of
from resourcepool.status.search import named
from resourcepool.translation import gettext_lazy as _


class ResourceAdmin(ActivityAdminMixin, DeletionMixin, ResourceColumnsMixin, ImportMixin):
    """The base for the admin of your own resource models.

    The page of a resource shows its state, the available operations and its activity.
    """

    has_settings = counts_unasked = True
    list_filter: ClassVar[tuple[Any, ...]] = (StateFilter, VerdictFilter, TagFilter, HolderFilter, HostFilter)
    sortable_by = ("held_by",)  # sorting 100,000 texts takes too long
    search_fields: ClassVar[tuple[str, ...]] = ("holder", "tags")
    search_help_text = _("Search by id, full address or any text.")
    exclude: ClassVar[Any] = ("in_service",)
    row_operations = ("revoke", "drain", "quarantine", "return_to_service")
    actions: Any = (export,)  # in addition to the operations

    def get_queryset(self, request: HttpRequest) -> Any:
        """Return the rows annotated with the time of the database's clock, which decides their state."""
        return super().get_queryset(request).annotate(db_now=DbNow())

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        """Find the resource that the term names; otherwise, resources that contain its words."""
        condition = named(self.model, search_term.strip()) if search_term.strip() else None
        if condition is not None and (matches := queryset.filter(condition)).exists():
            return matches, False
        return super().get_search_results(request, queryset, search_term)

    @method_decorator(sensitive_post_parameters())
    @sensitive_variables()
    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Keep the submitted values, which may include a password, out of error reports."""
        return super().changeform_view(request, *args, **kwargs)

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        more, state = super().page_context(request, row), state_of(row, row.db_now)
        leaks = leak_events(row) if state in describe.HELD else []
        sentences = [*describe.sentences(row, state, row.db_now, row.begun), *map(describe.leak_text, leaks)]
        return more | {"subtitle": describe.title_of(row), "state": self.state(row), "sentences": sentences}
