"""Proxies in the admin. Passwords can be entered but are never shown."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest

from resourcepool.admin.base import ModelForm
from resourcepool.admin.columns import lines
from resourcepool.admin.resources.filters import CountryFilter
from resourcepool.admin.resources.importers import ProxyImporter
from resourcepool.admin.resources.resource import ResourceAdmin
from resourcepool.events import localized
from resourcepool.exceptions import SecretUnreadable
from resourcepool.proxies import fields
from resourcepool.proxies.fields import IDENTITY, BadField
from resourcepool.proxies.models import Proxy
from resourcepool.translation import gettext_lazy as _


class ProxyForm(ModelForm):
    """Accepts a new password and never shows the stored one."""

    new_password = forms.CharField(
        label=_("New password"),
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_(
            "Leave empty to keep the stored password. It is removed when the address or user name changes."
        ),
    )

    class Meta:
        model = Proxy
        fields = ("scheme", "host", "port", "username", "country", "tags", "weight", "notes")

    def clean_new_password(self) -> str:
        """Encrypt it now, so that a missing key becomes an error of this field, like a value that no import accepts."""
        password = str(self.cleaned_data["new_password"])
        try:
            if password:
                self.instance.password = fields.password(password)
        except (BadField, SecretUnreadable) as error:
            raise forms.ValidationError(localized(error)) from None
        return ""


@admin.register(Proxy)
class ProxyAdmin(ResourceAdmin):
    importer = ProxyImporter
    form = ProxyForm
    list_filter: ClassVar[tuple[Any, ...]] = (*ResourceAdmin.list_filter, CountryFilter)
    search_fields: ClassVar[tuple[str, ...]] = (*ResourceAdmin.search_fields, "host", "username")

    @admin.display(description=_("tags, country"))
    def labels(self, resource: Any) -> str:
        return lines(super().labels(resource), resource.country)

    def save_model(self, request: HttpRequest, obj: Proxy, form: ModelForm, change: bool) -> None:
        """Remove the stored password if the address changed without a new one, and say so."""
        removes = change and _loses_password(form) and bool(obj.__dict__.get("password"))
        if removes:
            obj.password = ""
        super().save_model(request, obj, form, change)
        if removes:
            text = _("The stored password was removed because the address changed. Enter it again if needed.")
            self.message_user(request, text, messages.WARNING)

    def changed_columns(self, form: ModelForm) -> list[str]:
        """Return the changed columns, including that of the password."""
        columns = ["password" if name == "new_password" else name for name in super().changed_columns(form)]
        return [*columns, "password"] if _loses_password(form) else columns


def _loses_password(form: ModelForm) -> bool:
    """Whether the address changed, to which the stored password belongs, and no new password was entered."""
    return "new_password" not in form.changed_data and not set(IDENTITY).isdisjoint(form.changed_data)
