"""The form field of a secret: the stored one is never shown, and stays where the field is left empty."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_variables

from resourcepool.encryption.secret import EncryptedSecret, encrypt
from resourcepool.events import localized
from resourcepool.exceptions import SecretUnreadable

TRIED = ("tried",)  # and thrown away
MOVED = EncryptedSecret("")  # stands for a stored one that belongs to other values than those that were entered


class SecretInput(forms.PasswordInput):
    """Shows neither what is stored nor what was typed before; no browser fills it in."""

    def __init__(self, attrs: Any = None) -> None:
        super().__init__({"autocomplete": "new-password", **(attrs or {})}, render_value=False)


class _Entered(forms.BoundField):
    """What was typed; if that is nothing, what is stored, still sealed."""

    field: Any

    @property
    @sensitive_variables()
    def data(self) -> Any:
        typed = super().data
        if typed or not isinstance(self.initial, EncryptedSecret):
            return typed or ""
        return MOVED if any(map(self._is_edited, self.field.bound_to)) else self.initial

    def _is_edited(self, name: str) -> bool:
        other = self.form[name] if name in self.form.fields else None
        return other is not None and other.field.has_changed(other.initial, other.data)


class SecretField(forms.CharField):
    """Gives the text that was typed, which is never taken for a token, or the ``EncryptedSecret`` that is kept."""

    widget = SecretInput
    bound_field_class = _Entered

    def __init__(self, *, bound_to: Sequence[str] = (), **options: Any) -> None:
        super().__init__(**{"strip": False, **options})
        self.bound_to = bound_to

    def widget_attrs(self, widget: forms.Widget) -> dict[str, Any]:
        """Return the attributes without ``maxlength``: a browser cuts what is pasted, and nobody could see it."""
        return {name: value for name, value in super().widget_attrs(widget).items() if name != "maxlength"}

    @sensitive_variables()
    def clean(self, value: Any) -> Any:
        """Return it; a missing key is this field's error, and a stored one that cannot be kept."""
        if value is MOVED:
            raise ValidationError(
                _("Enter it again: the stored one belongs to what was here before your changes.")
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
        """Tell whether something was typed; whether it is what is stored, nobody learns."""
        return not self.disabled and bool(data) and not isinstance(data, EncryptedSecret)
