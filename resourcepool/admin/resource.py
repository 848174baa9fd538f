"""Resources in the admin: who has what, and until when. A running lease cannot be changed here."""

import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from resourcepool.dialect import DbNow
from resourcepool.resources.models import AbstractResource, Proxy
from resourcepool.resources.state import state_of

if TYPE_CHECKING:
    Admin = admin.ModelAdmin[Any]
    ModelForm = forms.ModelForm[Any]
else:  # Django's classes take no type parameters when they run
    Admin, ModelForm = admin.ModelAdmin, forms.ModelForm


class ResourceAdmin(Admin):
    """The base for the admin of your own resource models."""

    list_display: tuple[str, ...] = ("__str__", "state", "holder", "taken_until", "fence", "tags")
    list_filter: ClassVar[tuple[str, ...]] = ("in_service", "status")
    list_per_page = 50
    show_full_result_count = False
    search_fields: ClassVar[tuple[str, ...]] = ("holder", "tags")
    readonly_fields = ("state", "holder", "taken_until", "fence", "status", "reason", "until", "strikes")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the rows together with the database's clock, by which their state is judged."""
        rows: QuerySet[Any] = super().get_queryset(request).annotate(db_now=DbNow())
        return rows

    @admin.display(description=_("state"))
    def state(self, resource: AbstractResource) -> str:
        """Show what the resource is doing now."""
        return str(state_of(resource, getattr(resource, "db_now", None)).label)

    @admin.display(description=_("taken until"), ordering="busy_before")
    def taken_until(self, resource: AbstractResource) -> datetime.datetime | None:
        """Show when the lease, cool-down or quarantine ends, unless it has ended."""
        now = getattr(resource, "db_now", None) or timezone.now()
        return resource.busy_before if resource.busy_before > now else None

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm, change: bool) -> None:
        """Write only what was edited: the rest may have changed while the form was open."""
        if change:
            if form.changed_data:
                obj.save(update_fields=form.changed_data)
        else:
            super().save_model(request, obj, form, change)


class ProxyForm(ModelForm):
    """Takes a new password, never shows the one that is stored."""

    password = forms.CharField(
        label=_("Password"),
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("Leave empty to keep the stored one."),
    )

    class Meta:
        model = Proxy
        fields = (
            "scheme",
            "host",
            "port",
            "username",
            "password",
            "country",
            "tags",
            "weight",
            "notes",
            "in_service",
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial.pop("password", None)

    def clean_password(self) -> Any:
        """Keep the stored password, still encrypted, when none was entered."""
        return self.cleaned_data["password"] or self.instance.__dict__.get("password", "")


@admin.register(Proxy)
class ProxyAdmin(ResourceAdmin):
    """Proxies."""

    form = ProxyForm
    list_display: tuple[str, ...] = (*ResourceAdmin.list_display, "country")
    list_filter: ClassVar[tuple[str, ...]] = (*ResourceAdmin.list_filter, "country")
    search_fields: ClassVar[tuple[str, ...]] = (*ResourceAdmin.search_fields, "host", "username")
