"""The form for adding queues."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.functional import lazy

from resourcepool.admin.operations_mixin import refusal_text
from resourcepool.exceptions import BadOption
from resourcepool.labels import check_labels
from resourcepool.queues.models import MAX_PARAMETER, MAX_QUEUE_ID, QueueGroup
from resourcepool.queues.queries import MAX_QUEUES_AT_ONCE, expand_ids
from resourcepool.translation import gettext, gettext_lazy as _

MAX_CHOICES = 1_000
MAX_TEXT = MAX_QUEUES_AT_ONCE * (MAX_QUEUE_ID + 2)


def _queue_group_choices() -> list[tuple[str, str]]:
    names = QueueGroup.objects.order_by("name").values_list("name", flat=True)
    return [(name, name) for name in names[:MAX_CHOICES]]


def _queues_help() -> str:
    text = gettext(
        "One queue or range per line: 0..63 are 64 queues. Up to %(length)d characters each; at most %(most)d at once."
    )
    return text % {"length": MAX_QUEUE_ID, "most": MAX_QUEUES_AT_ONCE}


class LabelsField(forms.JSONField):
    """Labels as JSON; the value is a dict, {} if empty. Invalid input is shown again as it was typed."""

    widget = forms.Textarea(attrs={"rows": 2, "class": "vLargeTextField"})
    default_validators = [check_labels]

    def __init__(self, **options: Any) -> None:
        help_text = _('Only servers with all of these labels get them, e.g. {"zone": "eu"}.')
        super().__init__(
            **{"label": _("Labels"), "required": False, "initial": dict, "help_text": help_text, **options}
        )

    def to_python(self, value: Any) -> Any:
        """Return the decoded JSON; raises ValidationError."""
        try:
            return super().to_python(value) or {}
        except (ValueError, RecursionError):  # too many digits; too deeply nested: Django catches neither
            raise ValidationError(self.error_messages["invalid"], code="invalid") from None

    def bound_data(self, data: Any, initial: Any) -> Any:
        return data

    def prepare_value(self, value: Any) -> Any:
        return value if isinstance(value, str) else super().prepare_value(value)


class AddForm(forms.Form):
    """Asks for a queue group and its new queues; ``cleaned_data["queues"]`` is the list of ids."""

    queue_group = forms.ChoiceField(label=_("Queue group"), choices=_queue_group_choices)
    queues = forms.CharField(
        label=_("Queues"),
        max_length=MAX_TEXT,
        widget=forms.Textarea(attrs={"rows": 8, "class": "vLargeTextField"}),
        help_text=lazy(_queues_help, str)(),  # "lazy % values" would always be English
    )
    parameter = forms.CharField(
        label=_("Parameter"),
        required=False,
        max_length=MAX_PARAMETER,
        widget=forms.Textarea(attrs={"rows": 2, "class": "vLargeTextField"}),
        help_text=_(
            "Passed to their server, the same for all of these queues. Visible to all users who may view queues."
        ),
    )
    labels = LabelsField()

    def clean_queues(self) -> list[str]:
        """Return the ids, with expanded ranges; empty lines are ignored."""
        lines = (line.strip() for line in self.cleaned_data["queues"].splitlines())
        try:
            return expand_ids(line for line in lines if line)
        except BadOption as error:
            raise forms.ValidationError(refusal_text(error)) from None
