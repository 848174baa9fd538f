"""Queues in the admin, and the form for adding some. Changes go through a plan, never past a working server."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.functional import lazy

from resourcepool.admin.columns import column, for_time_since, lines, link_to_list, link_to_page
from resourcepool.admin.operations_mixin import refusal_text
from resourcepool.admin.queues.queue_groups import PerQueueGroupAdminMixin
from resourcepool.admin.queues.servers import QueueGroupFilter, ServerFilter, StatusFilter, queue_group_choices
from resourcepool.exceptions import BadOption
from resourcepool.operations.operation import by_name
from resourcepool.operations.queues import PIN, REMOVE, UNPIN
from resourcepool.options import check_labels
from resourcepool.queues import administration
from resourcepool.queues.models import MAX_PARAMETER, MAX_QUEUE_ID, Move, Queue, Server
from resourcepool.queues.queries import MAX_QUEUES_AT_ONCE, expand_ids
from resourcepool.status.queues.problems import why_no_owner
from resourcepool.status.queues.queue_groups import queue_group
from resourcepool.text import format_labels
from resourcepool.translation import gettext, gettext_lazy as _, ngettext

MAX_TEXT = MAX_QUEUES_AT_ONCE * (MAX_QUEUE_ID + 2)


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

    queue_group = forms.ChoiceField(label=_("Queue group"), choices=queue_group_choices)
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


ADD = {
    "name": "add",
    "button": _("Add"),
    "effect": _("Running servers pick them up at once; otherwise they stay unassigned."),
}


@admin.register(Queue)
class QueueAdmin(PerQueueGroupAdminMixin):
    """Queues are added, pinned and removed, never edited; each change plans the moves in the same transaction."""

    list_display = (
        *("queue_id", "queue_group", "owner", "requested_by"),
        column("micros_since", _("since"), for_time_since, name="since_when"),
        *("fence", "pin", column("labels", _("labels"), format_labels, name="needed")),
    )
    fields = (*list_display[:3], "why", *list_display[3:-1], "labels", "parameter", "moves")
    list_filter = (QueueGroupFilter, StatusFilter, ServerFilter)
    list_select_related = ("queue_group", "cur_server", "req_server")
    search_fields = ("queue_id__contains", "pin__contains", "cur_server__name__contains")
    search_help_text = _("Search by part of the queue's id, its pin, or the name of its server.")
    ordering = ("pk",)
    operations = by_name(PIN, UNPIN, REMOVE)
    time_annotations = {
        "micros_since": "since",
        "micros_requested": "requested_at",
        "micros_left": "cur_server__busy_before",
    }

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False, as a server may be working on the queue."""
        return False

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the fields of the page; "why" only for an unowned queue."""
        is_owned = obj is not None and obj.micros_left is not None and obj.micros_left > 0
        return [name for name in self.fields if not is_owned or name != "why"]

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Return the actions without Django's deletion, which would delete queues while servers work on them."""
        actions: dict[str, Any] = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        back, form = self.page_url("changelist"), AddForm(request.POST or None)
        if not form.is_bound:
            form.initial = {"queue_group": request.GET.get("queue_group", "")}
        if form.is_valid() and self.attempt(request, lambda: self._add(request, form.cleaned_data)):
            return HttpResponseRedirect(back)
        return self.render_form_page(request, gettext("Add queues"), form, back, {"operation": ADD})

    def delete_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        """Confirm, and remove a queue once its server has finished work on it."""
        return self.operate_view(request, object_id, REMOVE.name, back=self.page_url("changelist"))

    def _add(self, request: HttpRequest, entered: dict[str, Any]) -> None:
        columns = {name: entered[name] for name in ("parameter", "labels")}
        by = request.user.get_username()
        count = administration.add_queues(entered["queue_group"], entered["queues"], **columns, by=by)
        text = ngettext("%(count)d queue was added.", "%(count)d queues were added.", count)
        self.message_user(request, text % {"count": count}, messages.SUCCESS)

    def display_name(self, row: Any) -> str:
        return f"{row.queue_group} / {row.queue_id}"

    @admin.display(description=_("owner"))
    def owner(self, queue: Any) -> str:
        if queue.cur_server_id is None:
            return gettext("none")
        if queue.micros_left is None:  # its row was removed
            return f"#{queue.cur_server_id}"
        name = link_to_page(self.admin_site, Server, queue.cur_server_id, queue.cur_server)
        return lines(name, "" if queue.micros_left > 0 else gettext("presumed dead"))

    @admin.display(description=_("why unowned"))
    def why(self, queue: Any) -> str:
        alive = queue_group(queue.queue_group.name).alive
        return why_no_owner(queue.labels, [one.as_possible_owner for one in alive], queue.pin)

    @admin.display(description=_("moves"))
    def moves(self, queue: Any) -> str:
        filters = {"queue_group": queue.queue_group.name, "q": queue.queue_id}
        return link_to_list(self.admin_site, Move, gettext("past owners and reasons"), **filters)

    @admin.display(description=_("requested by"))
    def requested_by(self, queue: Any) -> str:
        if queue.micros_requested is None:
            return ""
        requester = gettext("to be removed") if queue.is_retiring else gettext("none")
        if queue.req_server is not None:
            requester = link_to_page(self.admin_site, Server, queue.req_server_id, queue.req_server)
        return lines(requester, for_time_since(queue.micros_requested))
