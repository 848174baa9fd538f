"""What is asked before queues are added. Django knows only some of the ways in which JSON can be wrong."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.functional import lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.operations_mixin import refusal_text
from resourcepool.exceptions import BadOption
from resourcepool.labels import check_labels
from resourcepool.queues.ids import MAX_QUEUES_AT_ONCE, queue_ids
from resourcepool.queues.models import MAX_PARAMETER, MAX_QUEUE_ID, QueueGroup

MAX_CHOICES = 1_000
MAX_TEXT = MAX_QUEUES_AT_ONCE * (MAX_QUEUE_ID + 2)


def _names() -> list[tuple[str, str]]:
    names = QueueGroup.objects.order_by("name").values_list("name", flat=True)
    return [(name, name) for name in names[:MAX_CHOICES]]


def _of_the_queues() -> str:
    text = gettext(
        "One a line, or a range: 0..63 are 64 queues. Each of up to %(length)d characters; at most %(most)d at once."
    )
    return text % {"length": MAX_QUEUE_ID, "most": MAX_QUEUES_AT_ONCE}


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
        return data

    def prepare_value(self, value: Any) -> Any:
        return value if isinstance(value, str) else super().prepare_value(value)


class AddForm(forms.Form):
    """Asks for a queue group, and for queues, one or a range a line; ``cleaned_data["queues"]`` is a list."""

    queue_group = forms.ChoiceField(label=_("Queue group"), choices=_names)
    queues = forms.CharField(
        label=_("Queues"),
        max_length=MAX_TEXT,
        widget=forms.Textarea(attrs={"rows": 8, "class": "vLargeTextField"}),
        help_text=lazy(_of_the_queues, str)(),  # "lazy % values" would be English for good
    )
    parameter = forms.CharField(
        label=_("Parameter"),
        required=False,
        max_length=MAX_PARAMETER,
        widget=forms.Textarea(attrs={"rows": 2, "class": "vLargeTextField"}),
        help_text=_(
            "Given to their server, the same for all of these. Everybody who may see the list can read it."
        ),
    )
    labels = LabelsField()

    def clean_queues(self) -> list[str]:
        """Return the ids, ranges written out; empty lines are none."""
        lines = (line.strip() for line in self.cleaned_data["queues"].splitlines())
        try:
            return queue_ids(line for line in lines if line)
        except BadOption as error:
            raise forms.ValidationError(refusal_text(error)) from None
