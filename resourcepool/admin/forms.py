"""The form that asks for the fields of an operation before it runs."""

import datetime
from collections.abc import Callable
from typing import Any

from django import forms

from resourcepool.db.dialect import aware
from resourcepool.exceptions import BadOption
from resourcepool.operations import DurationField, Operation, TextField
from resourcepool.resources.state import MAX_REASON
from resourcepool.status.times import with_zone
from resourcepool.translation import gettext_lazy as _

UNITS = [("minutes", _("minutes")), ("hours", _("hours")), ("days", _("days"))]


class OperationForm(forms.Form):
    """Asks for the fields of ``operation``.

    ``cleaned_data`` has a value for each field: a text, or a number of seconds (None: until further notice).

    Args:
        now: returns the time of the database's clock.
    """

    def __init__(self, data: Any = None, *, operation: Operation, now: Callable[[], datetime.datetime]) -> None:
        super().__init__(data)
        self.operation, self.now = operation, now
        for field in operation.fields:
            self.fields |= _text_fields(field) if isinstance(field, TextField) else _duration_fields(field)

    def clean(self) -> dict[str, Any]:
        super().clean()
        if self.errors:
            return self.cleaned_data
        entered = {
            field.name: self._clean_text(field) if isinstance(field, TextField) else self._clean_duration(field)
            for field in self.operation.fields
        }
        # The resource stores them joined, as its reason.
        if len(": ".join(value for value in entered.values() if isinstance(value, str))) > MAX_REASON:
            text = _("Name and reason together may have at most %(most)d characters.")
            raise forms.ValidationError(text % {"most": MAX_REASON - 2})
        return entered

    def _clean_text(self, field: TextField) -> str:
        text = self.cleaned_data[field.name]
        try:
            return field.clean(text)
        except BadOption as error:
            message = _("Enter one line of at most %(most)d printable characters.") % {"most": field.max_length}
            if text.isprintable():
                message = error.allowed
            raise forms.ValidationError({field.name: message}) from None

    def _clean_duration(self, field: DurationField) -> float | None:
        amount, until = self.cleaned_data.get("amount"), self.cleaned_data.get("until")
        if amount and until:
            raise forms.ValidationError(_("Enter a duration or an end time, not both."))
        if not amount and not until and field.is_required:
            raise forms.ValidationError(_("Enter a duration or an end time."))
        duration = aware(until) - with_zone(self.now()) if until else None
        if amount:  # at most 100,000 days, which a timedelta can hold
            duration = datetime.timedelta(**{self.cleaned_data["unit"] or "hours": amount})
        try:
            return field.clean(duration)
        except BadOption:
            message = _("The end must be in the future and at most 30 days from now.")
            raise forms.ValidationError(message) from None


def _text_fields(field: TextField) -> dict[str, forms.Field]:
    text = forms.CharField(
        label=field.label,
        max_length=field.max_length,
        required=field.is_required,
        widget=forms.TextInput(attrs={"class": "vTextField"}),
        help_text=field.help,
    )
    return {field.name: text}


def _duration_fields(field: DurationField) -> dict[str, forms.Field]:
    widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
    return {
        "amount": forms.IntegerField(label=field.label, min_value=1, max_value=100_000, required=False),
        "unit": forms.ChoiceField(label=_("Unit"), choices=UNITS, initial="hours", required=False),
        "until": forms.DateTimeField(label=_("Or until"), required=False, widget=widget),
    }
