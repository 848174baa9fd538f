"""The form field of a secret: never shows the stored value, and keeps it if the input is empty."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.views.decorators.debug import sensitive_variables

from resourcepool.encryption.secret import EncryptedSecret, encrypt
from resourcepool.events import localized
from resourcepool.exceptions import SecretUnreadable
from resourcepool.translation import gettext_lazy as _

TRIED = ("tried",)  # purpose of a trial encryption whose result is dropped
STALE = EncryptedSecret("")  # marks a stored value that is bound to other values than those entered


class SecretInput(forms.PasswordInput):
    """Shows neither the stored nor the entered value; browsers do not fill it in."""

    def __init__(self, attrs: Any = None) -> None:
        super().__init__({"autocomplete": "new-password", **(attrs or {})}, render_value=False)


class _Entered(forms.BoundField):
    """The entered text; if empty, the stored value, still encrypted."""

    field: Any

    @property
    @sensitive_variables()
    def data(self) -> Any:
        entered = super().data
        if entered or not isinstance(self.initial, EncryptedSecret):
            return entered or ""
        return STALE if any(map(self._is_edited, self.field.bound_to)) else self.initial

    def _is_edited(self, name: str) -> bool:
        other = self.form[name] if name in self.form.fields else None
        return other is not None and other.field.has_changed(other.initial, other.data)


class SecretField(forms.CharField):
    """Returns the entered text, which is never treated as a token, or the stored ``EncryptedSecret`` to keep."""

    widget = SecretInput
    bound_field_class = _Entered

    def __init__(self, *, bound_to: Sequence[str] = (), **options: Any) -> None:
        super().__init__(**{"strip": False, **options})
        self.bound_to = bound_to

    def widget_attrs(self, widget: forms.Widget) -> dict[str, Any]:
        """Return the attributes without ``maxlength``, by which browsers would truncate pasted text unseen."""
        return {name: value for name, value in super().widget_attrs(widget).items() if name != "maxlength"}

    @sensitive_variables()
    def clean(self, value: Any) -> Any:
        """Return the value; raises ValidationError for a missing key, or if the stored value cannot be kept."""
        if value is STALE:
            raise ValidationError(
                _("Enter it again: the stored value belongs to the fields as they were before your changes.")
            )
        if isinstance(value, EncryptedSecret):
            return value
        text = super().clean(value)
        try:
            if text:
                encrypt(text, TRIED)
        except SecretUnreadable as error:
            raise ValidationError(localized(error)) from None
        return text

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Whether a text was entered; does not reveal whether it equals the stored one."""
        return not self.disabled and bool(data) and not isinstance(data, EncryptedSecret)
