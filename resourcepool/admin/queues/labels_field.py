"""How labels are typed in: as JSON, of which Django knows only some of the ways to be wrong."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from resourcepool.queues.labels import check_labels


class LabelsField(forms.JSONField):
    """Gives a dict of texts, {} if nothing is typed; what is typed and wrong is shown as it was typed."""

    widget = forms.Textarea(attrs={"rows": 2, "class": "vLargeTextField"})
    default_validators = [check_labels]

    def __init__(self, **options: Any) -> None:
        help_text = _('Only servers with all of these get them, e.g. {"zone": "eu"}.')
        super().__init__(
            **{"label": _("Labels"), "required": False, "initial": dict, "help_text": help_text, **options}
        )

    def to_python(self, value: Any) -> Any:
        """Return what the JSON says; raises ValidationError."""
        try:
            return super().to_python(value) or {}
        except (ValueError, RecursionError):  # a number of too many digits; brackets in brackets in brackets
            raise ValidationError(self.error_messages["invalid"], code="invalid") from None

    def bound_data(self, data: Any, initial: Any) -> Any:
        """Return what was typed, whatever it is."""
        return data

    def prepare_value(self, value: Any) -> Any:
        """Return the text to show."""
        return value if isinstance(value, str) else super().prepare_value(value)
