"""The base of all pages of the admin: safe from odd addresses, and with lists that stay quick on long tables.

Anybody can write NUL into an address, or a regular expression that keeps SQLite busy for hours.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.filters import FieldListFilter
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import get_fields_from_path, unquote
from django.core.exceptions import FieldDoesNotExist, SuspiciousOperation, ValidationError
from django.db import connections, router
from django.db.models import DateTimeField
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.admin.columns import formatted_fields
from resourcepool.admin.datetime_lookups import compares_moments, moment_of
from resourcepool.admin.paging import NUL, CappedList, CappedPaginator
from resourcepool.database.columns import is_seconds
from resourcepool.database.short_statements import fail_if_locked, row_locked
from resourcepool.dialect import MicrosUntil
from resourcepool.events import localized
from resourcepool.exceptions import RowLocked
from resourcepool.leases.lock_holders import describe_lockers
from resourcepool.status.snapshots import exact_duration

# Django's classes as the type checker wants them; they take no type parameters at run time.
if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
    ModelForm = forms.ModelForm[Any]
else:
    ModelAdmin, ModelForm = admin.ModelAdmin, forms.ModelForm


class SecondsField(forms.FloatField):
    """A field for seconds, which shows whole ones without a fraction."""

    def prepare_value(self, value: Any) -> Any:
        """Return 604800 for 604800.0."""
        return int(value) if isinstance(value, float) and value.is_integer() else value


class BaseAdmin(ModelAdmin):
    """A page that knows no row whose key no database can hold, and whose list never counts its table.

    ``time_annotations``: annotations of each row, by name: the microseconds until the moment in a column, by the database's clock.
    """

    list_per_page = 50
    show_full_result_count = False
    paginator = CappedPaginator
    time_annotations: ClassVar[dict[str, str]] = {}

    class Media:
        css = {"all": ("resourcepool/admin.css",)}

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[CappedList]:
        return CappedList

    def get_queryset(self, request: HttpRequest) -> Any:
        time_annotations = {name: MicrosUntil(column) for name, column in self.time_annotations.items()}
        return super().get_queryset(request).annotate(**time_annotations)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if is_seconds(db_field):
            kwargs["form_class"] = SecondsField
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """Return the form; the help of each field for seconds tells how long its default, or its value, is."""
        form: Any = super().get_form(request, obj, change, **kwargs)
        text = gettext_lazy("{help} Default: {time}.") if obj is None else gettext_lazy("{help} Now: {time}.")
        for column in filter(is_seconds, self.opts.fields):
            if field := form.base_fields.get(column.name):
                seconds = column.get_default() if obj is None else getattr(obj, column.name)
                field.help_text = format_lazy(text, help=field.help_text, time=exact_duration(seconds))
        return form

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return what the page shows; if nothing on it is edited, values are spelled as in lists."""
        found: Any = super().get_fieldsets(request, obj)
        if obj is None or self.has_change_permission(request, obj):
            return found
        return [
            (name, {**more, "fields": formatted_fields(more["fields"], self.model)}) for name, more in found
        ]

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Write only what was edited: others write the rest while the form is open."""
        if not change:
            super().save_model(request, obj, form, change)
        elif changed_columns := self.changed_columns(form):
            obj.save(update_fields=changed_columns)

    def changed_columns(self, form: Any) -> list[str]:
        """Return the columns that ``form`` changes."""
        return list(form.changed_data)

    def load_column_values(self, rows: Any) -> None:
        """Set on ``rows``, which share one page, the values that columns need: one query for all rows."""

    def load_page_values(self, row: Any) -> None:
        """Set the same on the ``row`` of a change page."""
        self.load_column_values([row])

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return the template's context for the page of ``row``, besides the form."""
        self.load_page_values(row)
        return {}

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        if (row := kwargs.get("obj")) is not None:
            context |= self.page_context(request, row)
        return super().render_change_form(request, context, *args, **kwargs)

    def url_pattern(self, route: str, view: Callable[..., HttpResponse], page: str) -> URLPattern:
        """Return the address of a page that Django has not, for ``get_urls``."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_{page}"
        return path(route, self.admin_site.admin_view(view), name=name)

    def page_url(self, page: str, *args: str) -> str:
        """Return the URL of a page of this model."""
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}"
        return reverse(name, args=args, current_app=self.admin_site.name)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        return None if NUL in object_id else super().get_object(request, object_id, from_field)

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show and save the form; a row that another transaction keeps locked is not saved."""
        view = partial(super().changeform_view, request, object_id, *args, **kwargs)
        return self._briefly(request, view, _("Not saved: %s"), object_id)

    def delete_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        """Ask, then delete; a row that another transaction keeps locked is not deleted."""
        view = partial(super().delete_view, request, object_id, *args, **kwargs)
        return self._briefly(request, view, _("Not deleted: %s"), object_id)

    def _briefly(
        self, request: HttpRequest, view: Callable[[], HttpResponse], otherwise: str, object_id: str | None
    ) -> HttpResponse:
        if request.method != "POST":
            return view()
        using = router.db_for_write(self.model)
        try:
            with fail_if_locked(using):
                return view()
        except RowLocked:
            error = row_locked(using, describe_lockers(using, self.model, self._key(object_id)))
            self.message_user(request, otherwise % localized(error), messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def _key(self, object_id: str | None) -> list[Any]:
        """Return the primary key that an address names, if it can be one."""
        if object_id is None or not self._can_be_key(unquote(object_id)):
            return []
        return [self.opts.pk.to_python(unquote(object_id))]

    def response_action(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Run an action on the chosen rows; Django answers 400 to keys that no row can have."""
        if all(map(self._can_be_key, request.POST.getlist(ACTION_CHECKBOX_NAME))):
            return super().response_action(request, *args, **kwargs)
        raise SuspiciousOperation("no key of a row")

    def _can_be_key(self, text: str) -> bool:
        key = self.opts.pk
        try:
            key.run_validators(key.to_python(text))  # one of them is the range of the database's numbers
        except ValidationError:
            return False
        return NUL not in text and self._can_be(key, text)

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """Allow the list's own filters, a column's value, and moments before or after one; the rest is 400."""
        if any(lookup in self._asked_by(one, request) for one in self.get_list_filter(request)):  # type: ignore[arg-type]
            return True
        if compares_moments(self.model, lookup):
            return moment_of(value) is not None
        try:
            field = self.opts.get_field(lookup.removesuffix("__exact"))
        except FieldDoesNotExist:
            return False
        is_value = field.concrete and not field.is_relation and field.get_lookup("exact") is not None
        return is_value and self._can_be(field, value)

    def _asked_by(self, chosen: Any, request: Any) -> list[str | None]:
        """Return the parameters of one entry of ``list_filter``."""
        if isinstance(chosen, type) and issubclass(chosen, admin.SimpleListFilter):
            return [chosen.parameter_name]
        if isinstance(chosen, type):
            return list(chosen(request, {}, self.model, self).expected_parameters())
        path, kind = (chosen, FieldListFilter.create) if isinstance(chosen, str) else chosen
        field = get_fields_from_path(self.model, path)[-1]
        return list(kind(field, request, {}, self.model, self, field_path=path).expected_parameters())

    def _can_be(self, field: Any, value: str) -> bool:
        """Tell whether every database can be asked whether ``field`` is ``value``."""
        if isinstance(field, DateTimeField):
            return False  # each database has its own idea of which zones and years there are
        try:
            found = field.to_python(value)
            field.get_db_prep_value(found, connections[router.db_for_read(self.model)])
        except (ValidationError, ValueError, TypeError, ArithmeticError):
            return False
        return not isinstance(found, float) or math.isfinite(found)

    def render_page(self, request: HttpRequest, template: str, title: str, **more: Any) -> HttpResponse:
        context = {"title": title, "opts": self.opts, "media": self.media, **more}
        request.current_app = self.admin_site.name
        return TemplateResponse(request, template, self.admin_site.each_context(request) | context)


class ExactSearchMixin(ModelAdmin):
    """A list whose search takes the whole term, spaces and all, for its one search field, the way the index has it."""

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        term = search_term.strip()
        return (queryset.filter(**{str(self.search_fields[0]): term}) if term else queryset), False


class ReadOnlyAdmin(BaseAdmin):
    """Nobody adds, changes or deletes here."""

    actions: Any = None
    show_facets = admin.ShowFacets.NEVER  # events and moves are too many to be counted for each filter
    sortable_by: ClassVar[Any] = ()  # there is no index for it
    ordering: ClassVar[tuple[str, ...]] = ("-pk",)

    def get_list_display(self, request: HttpRequest) -> Any:
        return formatted_fields(self.list_display, self.model)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_change_permission = has_delete_permission = has_add_permission
