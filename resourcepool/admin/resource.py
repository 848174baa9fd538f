"""Resources in the admin: who has what, and until when. A running lease cannot be changed here."""

import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from resourcepool.dialect import DbNow
from resourcepool.exceptions import SecretUnreadable
from resourcepool.resources.models import AbstractResource, Proxy
from resourcepool.resources.secret import seal
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
    readonly_fields = (
        *("state", "holder", "taken_until", "fence"),
        *("in_service", "status", "reason", "until", "strikes"),
    )
    actions = ("take_out", "return_to_service")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the rows together with the database's clock, by which their state is judged."""
        rows: QuerySet[Any] = super().get_queryset(request).annotate(db_now=DbNow())
        return rows

    @admin.display(description=_("state"))
    def state(self, resource: AbstractResource) -> str:
        """Show what the resource is doing now."""
        now = getattr(resource, "db_now", None)
        return "" if now is None else str(state_of(resource, now).label)

    @admin.display(description=_("taken until"), ordering="busy_before")
    def taken_until(self, resource: AbstractResource) -> datetime.datetime | None:
        """Show when the lease, cool-down or quarantine ends, unless it has ended."""
        now = getattr(resource, "db_now", None)
        return resource.busy_before if now is not None and resource.busy_before > now else None

    @admin.action(
        description=_("Take out of service (running leases are not disturbed)"), permissions=["change"]
    )
    def take_out(self, request: HttpRequest, resources: Any) -> None:
        """Hand the selected ones out no more."""
        count = resources.take_out(f"by {request.user.get_username()}"[:200])
        self.message_user(request, _("%(count)d taken out of service.") % {"count": count})

    @admin.action(description=_("Return to service (ends a quarantine)"), permissions=["change"])
    def return_to_service(self, request: HttpRequest, resources: Any) -> None:
        """Hand the selected ones out again."""
        count = resources.return_to_service()
        self.message_user(request, _("%(count)d returned to service.") % {"count": count})

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete one, or say that it was held."""
        self.delete_queryset(request, type(obj)._default_manager.filter(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        """Delete those that are free, and say how many were held."""
        pks = list(queryset.values_list("pk", flat=True))
        queryset.delete()
        held = queryset.model._default_manager.filter(pk__in=pks).count()
        if held:
            text = _("%(count)d held: retired instead, their holders are not disturbed. Delete again later.")
            self.message_user(request, text % {"count": held}, messages.WARNING)

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm, change: bool) -> None:
        """Write only what was edited: the rest may have changed while the form was open."""
        if not change:
            super().save_model(request, obj, form, change)
        elif edited := self.edited(form):
            obj.save(update_fields=edited)

    def edited(self, form: ModelForm) -> list[str]:
        """Return the names of the model's fields that ``form`` changed."""
        return list(form.changed_data)


class ProxyForm(ModelForm):
    """Takes a new password, never shows the one that is stored."""

    new_password = forms.CharField(
        label=_("New password"),
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("Leave empty to keep the stored one."),
    )

    class Meta:
        model = Proxy
        fields = ("scheme", "host", "port", "username", "country", "tags", "weight", "notes")

    def clean_new_password(self) -> str:
        """Encrypt it at once, so that a missing key is the field's error."""
        password = str(self.cleaned_data["new_password"])
        try:
            if password:
                self.instance.password = seal(password)
        except SecretUnreadable as error:
            raise forms.ValidationError(str(error)) from None
        return ""


@admin.register(Proxy)
class ProxyAdmin(ResourceAdmin):
    """Proxies."""

    form = ProxyForm
    list_display: tuple[str, ...] = (*ResourceAdmin.list_display, "country")
    list_filter: ClassVar[tuple[str, ...]] = (*ResourceAdmin.list_filter, "country")
    search_fields: ClassVar[tuple[str, ...]] = (*ResourceAdmin.search_fields, "host", "username")

    def edited(self, form: ModelForm) -> list[str]:
        """Return the changed fields; the password by its name in the model."""
        return ["password" if name == "new_password" else name for name in form.changed_data]
