"""The base classes of all admin pages: robust against hostile URLs, and fast on long tables.

A URL may contain NUL, or a regular expression that keeps SQLite busy for hours.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.filters import FieldListFilter
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import get_fields_from_path, label_for_field, lookup_field, unquote
from django.core.exceptions import FieldDoesNotExist, SuspiciousOperation, ValidationError
from django.db import connections, router
from django.db.models import DateTimeField, JSONField
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from resourcepool.admin.columns import formatted_fields, without_unit
from resourcepool.admin.forms import SecondsField
from resourcepool.admin.paging import NUL, CappedList, CappedPaginator
from resourcepool.db.dialect import MicrosUntil
from resourcepool.db.dialect.fields import is_seconds
from resourcepool.db.row_locks import describe_lockers, row_locked
from resourcepool.db.transactions import fail_if_locked
from resourcepool.events import localized
from resourcepool.exceptions import RowLocked
from resourcepool.translation import gettext as _

# The stubs want type parameters that Django's classes do not take at run time.
if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
    ModelForm = forms.ModelForm[Any]
else:
    ModelAdmin, ModelForm = admin.ModelAdmin, forms.ModelForm


class BaseAdmin(ModelAdmin):
    """The base of all admin pages of this app.

    Attributes:
        counts_unasked: the filters of a short table show how many rows they find.
        has_settings: its page shows its state first; the form below it, with the settings, is folded.
        facts: the columns of the list that this state consists of.
        time_annotations: annotations of each row, as {name: column}: the microseconds from now, by the database's
            clock, until the time in that column.
    """

    list_per_page = 50
    show_full_result_count = False
    paginator = CappedPaginator
    change_list_template = "resourcepool/admin/change_list.html"
    change_form_template = "resourcepool/admin/page.html"
    has_settings = False
    counts_unasked = False
    facts: Sequence[Any] = ()
    time_annotations: ClassVar[dict[str, str]] = {}

    class Media:
        css = {"all": ("resourcepool/admin.css",)}
        js = ("resourcepool/admin.js",)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[CappedList]:
        return CappedList

    def get_queryset(self, request: HttpRequest) -> Any:
        time_annotations = {name: MicrosUntil(column) for name, column in self.time_annotations.items()}
        return super().get_queryset(request).annotate(**time_annotations)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if is_seconds(db_field):
            kwargs |= {"form_class": SecondsField, "label": without_unit(db_field.verbose_name)}
        if isinstance(db_field, JSONField):
            kwargs["widget"] = forms.Textarea(attrs={"rows": 3, "cols": 60})
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the fieldsets; on a page that is only read, values are formatted as in lists."""
        fieldsets: Any = super().get_fieldsets(request, obj)
        if obj is None or self.has_change_permission(request, obj):
            return fieldsets
        return [
            (name, {**options, "fields": formatted_fields(options["fields"], self.model)})
            for name, options in fieldsets
        ]

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Write only the changed columns: programs write the others while the form is open."""
        if not change:
            super().save_model(request, obj, form, change)
        elif columns := self.changed_columns(form):
            obj.save(update_fields=columns)

    def changed_columns(self, form: Any) -> list[str]:
        return list(form.changed_data)

    def load_column_values(self, rows: Any) -> None:
        """Set on ``rows``, which are one page of the list, the values that columns need, in one query for all."""

    def load_page_values(self, row: Any) -> None:
        """Set on the ``row`` of a change page the values that its lines need."""
        self.load_column_values([row])

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return the additional template context for the page of ``row``."""
        self.load_page_values(row)
        facts = [
            (
                getattr(each, "__name__", each),
                label_for_field(each, self.model, self),
                lookup_field(each, row, self)[2],
            )
            for each in self.facts
        ]
        return {"facts": facts, "folded": self.has_settings}

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        if (row := kwargs.get("obj")) is not None:
            context |= self.page_context(request, row)
        return super().render_change_form(request, context, *args, **kwargs)

    def url_pattern(self, route: str, view: Callable[..., HttpResponse], page: str) -> URLPattern:
        """Return the URL pattern of an additional page, for ``get_urls``."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_{page}"
        return path(route, self.admin_site.admin_view(view), name=name)

    def page_url(self, page: str, *args: str) -> str:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}"
        return reverse(name, args=args, current_app=self.admin_site.name)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        return None if NUL in object_id else super().get_object(request, object_id, from_field)

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show and save the form; a row that another transaction has locked is not saved."""
        view = partial(super().changeform_view, request, object_id, *args, **kwargs)
        return self._report_locked_row(request, view, _("Not saved: %s"), object_id)

    def delete_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        """Ask, then delete; a row that another transaction has locked is not deleted."""
        view = partial(super().delete_view, request, object_id, *args, **kwargs)
        return self._report_locked_row(request, view, _("Not deleted: %s"), object_id)

    def _report_locked_row(
        self, request: HttpRequest, view: Callable[[], HttpResponse], message: str, object_id: str | None
    ) -> HttpResponse:
        if request.method != "POST":
            return view()
        using = router.db_for_write(self.model)
        try:
            with fail_if_locked(using):
                return view()
        except RowLocked:
            error = row_locked(using, describe_lockers(using, self.model, self._key(object_id)))
            self.message_user(request, message % localized(error), messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def _key(self, object_id: str | None) -> list[Any]:
        """Return the primary key in a URL as a list; empty if no row can have it."""
        if object_id is None or not self._is_possible_key(unquote(object_id)):
            return []
        return [self.opts.pk.to_python(unquote(object_id))]

    def response_action(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Run an action on the selected rows; keys that no row can have are answered with 400."""
        if all(map(self._is_possible_key, request.POST.getlist(ACTION_CHECKBOX_NAME))):
            return super().response_action(request, *args, **kwargs)
        raise SuspiciousOperation("no key of a row")

    def _is_possible_key(self, text: str) -> bool:
        key = self.opts.pk
        try:
            key.run_validators(key.to_python(text))  # includes the number range of the database
        except ValidationError:
            return False
        return NUL not in text and self._is_possible_value(key, text)

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """Allow the list's filters, ``column=value``; anything else is answered with 400."""
        if any(lookup in self._filter_params(entry, request) for entry in self.get_list_filter(request)):  # type: ignore[arg-type]
            return True
        try:
            field = self.opts.get_field(lookup.removesuffix("__exact"))
        except FieldDoesNotExist:
            return False
        is_value = field.concrete and not field.is_relation and field.get_lookup("exact") is not None
        return is_value and self._is_possible_value(field, value)

    def _filter_params(self, entry: Any, request: Any) -> list[str | None]:
        """Return the URL parameters of one entry of ``list_filter``."""
        if isinstance(entry, type) and issubclass(entry, admin.SimpleListFilter):
            return [entry.parameter_name]
        if isinstance(entry, type):
            return list(entry(request, {}, self.model, self).expected_parameters())
        path, kind = (entry, FieldListFilter.create) if isinstance(entry, str) else entry
        field = get_fields_from_path(self.model, path)[-1]
        return list(kind(field, request, {}, self.model, self, field_path=path).expected_parameters())

    def _is_possible_value(self, field: Any, value: str) -> bool:
        """Return whether every database can compare ``field`` with ``value``."""
        if isinstance(field, DateTimeField):
            return False  # databases differ in the time zones and years they accept
        try:
            parsed = field.to_python(value)
            field.get_db_prep_value(parsed, connections[router.db_for_read(self.model)])
        except (ValidationError, ValueError, TypeError, ArithmeticError):
            return False
        return not isinstance(parsed, float) or math.isfinite(parsed)

    def render_page(
        self, request: HttpRequest, template: str, title: str, **extra_context: Any
    ) -> HttpResponse:
        context = {"title": title, "opts": self.opts, "media": self.media, **extra_context}
        request.current_app = self.admin_site.name
        return TemplateResponse(request, template, self.admin_site.each_context(request) | context)


class ExactSearchMixin(ModelAdmin):
    """A list whose search compares the whole term with its one search field, so that an index serves it."""

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        term = search_term.strip()
        return (queryset.filter(**{str(self.search_fields[0]): term}) if term else queryset), False


class ReadOnlyAdmin(BaseAdmin):
    """A page without adding, changing and deleting."""

    actions: Any = None
    show_facets = admin.ShowFacets.NEVER  # tables are too long to count for each filter
    sortable_by: ClassVar[Any] = ()  # no index supports it
    ordering: ClassVar[tuple[str, ...]] = ("-pk",)

    def get_list_display(self, request: HttpRequest) -> Any:
        return formatted_fields(super().get_list_display(request), self.model)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_change_permission = has_delete_permission = has_add_permission
