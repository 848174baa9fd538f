"""What is asked before something is done to resources."""

import datetime
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from resourcepool import options
from resourcepool.exceptions import BadOption
from resourcepool.resources.state import MAX_REASON

MAX_NAME = 80
LONGEST = datetime.timedelta(days=30)
UNITS = [("minutes", _("minutes")), ("hours", _("hours")), ("days", _("days"))]


def _line(value: str, most: int) -> str:
    try:
        return options.text("text", value, most=most) if value else ""
    except BadOption:
        message = _("One line of at most %(most)d printable characters.") % {"most": most}
        raise forms.ValidationError(message) from None


class ReasonForm(forms.Form):
    """Asks why; ``now`` is the database's clock."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=MAX_REASON,
        widget=forms.TextInput(attrs={"class": "vTextField"}),
        help_text=_("One line for whoever asks later. Everybody who may see this list can read it."),
    )

    def __init__(self, *args: Any, now: datetime.datetime, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.now = now

    def clean_reason(self) -> str:
        """Refuse what would not fit on one line."""
        return _line(self.cleaned_data["reason"], MAX_REASON)


class OptionalReasonForm(ReasonForm):
    """Asks why, and takes no answer as one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["reason"].required = False


class NoReasonForm(ReasonForm):
    """Asks nothing but whether: what is found is the reason."""

    reason = None  # type: ignore[assignment]

    def clean(self) -> dict[str, Any]:
        """Give none."""
        return {"reason": ""}


class SpanForm(ReasonForm):
    """Asks why and for how long; ``cleaned_data["duration"]`` is a timedelta, or None for "until further notice"."""

    span_is_needed = False

    amount = forms.IntegerField(label=_("For"), min_value=1, max_value=100_000, required=False)
    unit = forms.ChoiceField(label=_("Unit"), choices=UNITS, initial="hours", required=False)
    until = forms.DateTimeField(
        label=_("Or until"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )

    def clean(self) -> dict[str, Any]:
        """Work out the duration."""
        entered: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors:
            return entered
        amount, until = entered.get("amount"), entered.get("until")
        if amount and until:
            raise forms.ValidationError(_("Say for how long or until when, not both."))
        entered["duration"] = None
        if amount:
            # 100,000 days are still a timedelta; what is too long is refused below.
            entered["duration"] = datetime.timedelta(**{entered["unit"] or "hours": amount})
        elif until:
            entered["duration"] = until - self.now
        self._check(entered["duration"])
        return entered

    def _check(self, duration: datetime.timedelta | None) -> None:
        if duration is None:
            if self.span_is_needed:
                raise forms.ValidationError(_("Say for how long or until when."))
        elif not datetime.timedelta() < duration <= LONGEST:
            raise forms.ValidationError(_("The end must be in the future, and at most 30 days from now."))


class QuarantineForm(SpanForm):
    """A quarantine ends by itself, so it needs an end."""

    span_is_needed = True


class ReserveForm(SpanForm):
    """Asks for whom, too."""

    field_order = ("name", "reason", "amount", "unit", "until")

    name = forms.CharField(label=_("For whom"), max_length=MAX_NAME)

    def clean_name(self) -> str:
        """Refuse what would not fit on one line."""
        return _line(self.cleaned_data["name"], MAX_NAME)

    def clean(self) -> dict[str, Any]:
        """Name and reason share a line."""
        entered = super().clean()
        if len(entered.get("name", "")) + len(entered.get("reason", "")) + 2 > MAX_REASON:
            raise forms.ValidationError(
                _("Name and reason together: at most %(most)d characters.") % {"most": MAX_REASON - 2}
            )
        return entered
