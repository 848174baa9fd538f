"""The form that asks for the fields of an operation before it runs, and fields for durations."""

import datetime
from collections.abc import Callable
from typing import Any

from django import forms
from django.utils.dateparse import parse_time

from resourcepool.admin.paging import parse_param
from resourcepool.db.dialect import aware
from resourcepool.exceptions import BadOption
from resourcepool.operations import DurationField, Operation, TextField
from resourcepool.options import parse_duration, short_duration
from resourcepool.resources.state import MAX_REASON
from resourcepool.status.times import with_zone
from resourcepool.translation import gettext_lazy as _

PRESETS = ("15m", "1h", "8h", "1d", "7d")  # offered for durations
REQUIRED_HELP = _("A duration such as 15m, 2h or 7d; or an end such as 18:30 or 2026-11-28 08:00.")
OPTIONAL_HELP = _("A duration such as 15m, 2h or 7d; or an end such as 18:30. Empty: until further notice.")
DURATIONS = "resourcepool-durations"  # HTML id of the presets


class OperationForm(forms.Form):
    """Asks for the fields of ``operation``.

    ``cleaned_data`` has a value for each field: a text, or a number of seconds (None: until further notice).

    Args:
        now: returns the time of the database's clock.
        actor: the operator's own name.
    """

    required_css_class = "required"
    presets = PRESETS
    presets_id = DURATIONS

    def __init__(
        self, data: Any = None, *, operation: Operation, now: Callable[[], datetime.datetime], actor: str = ""
    ) -> None:
        super().__init__(data)
        self.operation, self.now = operation, now
        for field in operation.fields:
            self.fields[field.name] = (
                _text_field(field, actor) if isinstance(field, TextField) else _duration_field(field)
            )
        empty = (field for field in self.fields.values() if not field.initial)
        if first := next(empty, None):
            first.widget.attrs["autofocus"] = True  # Enter then runs the operation, without another click

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
        text = self.cleaned_data[field.name]
        duration: Any = parse_duration(text) if text else None
        if text and duration is None and (end := _end(text, with_zone(self.now()))):
            duration = end - with_zone(self.now())
        elif text and duration is None:
            message = _("Enter a duration such as 90s, 15m, 2h or 7d, or an end such as 18:30.")
            raise forms.ValidationError({field.name: message})
        try:
            return field.clean(duration)
        except BadOption:
            message = _("The end must be in the future and at most 30 days from now.")
            raise forms.ValidationError({field.name: message}) from None


def _end(text: str, now: datetime.datetime) -> datetime.datetime | None:
    """Return the moment "2026-11-21 18:30", or the next "18:30"; None: it is neither."""
    if moment := parse_param(text):
        return moment
    try:
        time = parse_time(text)
    except ValueError:
        return None
    if time is None:
        return None
    today = aware(datetime.datetime.combine(aware(now).date(), time))
    return today if today > now else today + datetime.timedelta(days=1)


def _text_field(field: TextField, actor: str) -> forms.Field:
    return forms.CharField(
        label=field.label,
        initial=actor if field.is_own_name else "",
        max_length=field.max_length,
        required=field.is_required,
        widget=forms.TextInput(attrs={"class": "vTextField"}),
        help_text=field.help,
    )


def _duration_field(field: DurationField) -> forms.Field:
    return forms.CharField(
        label=field.label,
        max_length=40,
        required=field.is_required,
        widget=forms.TextInput(attrs={"list": DURATIONS, "autocomplete": "off"}),
        help_text=REQUIRED_HELP if field.is_required else OPTIONAL_HELP,
    )


class SecondsField(forms.FloatField):
    """A number of seconds, shown and entered as a duration: "7d"."""

    widget = forms.TextInput

    def prepare_value(self, value: Any) -> Any:
        return short_duration(value) if isinstance(value, int | float) else value

    def to_python(self, value: Any) -> Any:
        seconds = parse_duration(value) if isinstance(value, str) else None
        return super().to_python(value) if seconds is None else seconds
