"""How a secret is entered into a form: it goes in and never comes out; what is left empty stays as it is stored."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.views.decorators.debug import sensitive_variables

from resourcepool.exceptions import SecretUnreadable
from resourcepool.phrases import shown
from resourcepool.resources.sealing import Sealed, seal


class SecretInput(forms.PasswordInput):
    """Shows neither what is stored nor what was typed before; no browser fills it in."""

    def __init__(self, attrs: Any = None) -> None:
        super().__init__({"autocomplete": "new-password", **(attrs or {})}, render_value=False)


class _Entered(forms.BoundField):
    """What was typed; if that is nothing, what is stored, still sealed."""

    @property
    @sensitive_variables()
    def data(self) -> Any:
        return super().data or (self.initial if isinstance(self.initial, Sealed) else "")


class SecretField(forms.CharField):
    """Gives the text that was typed, which is never taken for a token, or the ``Sealed`` that is kept."""

    widget = SecretInput
    bound_field_class = _Entered

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"strip": False, **options})

    @sensitive_variables()
    def clean(self, value: Any) -> Any:
        """Return it; a missing key is this field's error."""
        if isinstance(value, Sealed):
            return value
        text = super().clean(value)
        try:
            if text:
                seal(text)
        except SecretUnreadable as error:
            raise ValidationError(shown(error)) from None
        return text

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Tell whether something was typed; whether it is what is stored, nobody learns."""
        return not self.disabled and bool(data) and not isinstance(data, Sealed)
