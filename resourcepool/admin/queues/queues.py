"""Queues in the admin: who has which, and who is to have it. They change only as their servers can bear it."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.columns import column, for_time_since, lines, link_to_list, link_to_page
from resourcepool.admin.queues.add_form import AddForm
from resourcepool.admin.queues.admin_mixin import PerQueueGroupAdminMixin
from resourcepool.admin.queues.filters import QueueGroupFilter, ServerFilter, StatusFilter
from resourcepool.labels import format_labels
from resourcepool.operations.operation import by_name
from resourcepool.operations.queues import PIN, REMOVE, UNPIN
from resourcepool.queues import administration
from resourcepool.queues.models import Move, Queue, Server
from resourcepool.status.queues.problems import why_no_owner
from resourcepool.status.queues.queue_groups import queue_group

ADD = {
    "name": "add",
    "button": _("Add"),
    "effect": _("Its servers share them at once; while there is no server, they wait for one."),
}


@admin.register(Queue)
class QueueAdmin(PerQueueGroupAdminMixin):
    """Nothing is edited: queues are added, pinned and removed, and what that moves is planned in the same moment."""

    list_display = (
        *("queue_id", "queue_group", "owner", "asked_for_by"),
        column("micros_since", _("since"), for_time_since, name="since_when"),
        *("fence", "pin", column("labels", _("labels"), format_labels, name="needed")),
    )
    fields = (*list_display[:3], "why", *list_display[3:-1], "labels", "parameter", "moves")
    list_filter = (QueueGroupFilter, StatusFilter, ServerFilter)
    list_select_related = ("queue_group", "cur_server", "req_server")
    search_fields = ("queue_id__contains", "pin__contains", "cur_server__name__contains")
    search_help_text = _("A part of the queue's id, of its pin, or of the name of the server that has it.")
    ordering = ("pk",)
    operations = by_name(PIN, UNPIN, REMOVE)
    time_annotations = {
        "micros_since": "since",
        "micros_asked": "requested_at",
        "micros_left": "cur_server__busy_before",
    }

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody edits a queue that a server may be working on."""
        return False

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return what the page shows; of a queue that somebody has, not why nobody has it."""
        is_owned = obj is not None and obj.micros_left is not None and obj.micros_left > 0
        return [name for name in self.fields if not is_owned or name != "why"]

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Return the actions without Django's own deletion, which would take queues from under their servers."""
        found: dict[str, Any] = super().get_actions(request)
        found.pop("delete_selected", None)
        return found

    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        there, form = self.page_url("changelist"), AddForm(request.POST or None)
        if not form.is_bound:
            form.initial = {"queue_group": request.GET.get("queue_group", "")}
        if form.is_valid() and self.attempt(request, lambda: self._add(request, form.cleaned_data)):
            return HttpResponseRedirect(there)
        return self.render_form_page(request, gettext("Add queues"), form, there, {"operation": ADD})

    def delete_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        """Ask, and remove one queue when its server has finished with it."""
        return self.operate_view(request, object_id, REMOVE.name, back=self.page_url("changelist"))

    def _add(self, request: HttpRequest, entered: dict[str, Any]) -> None:
        about = {name: entered[name] for name in ("parameter", "labels")}
        by = request.user.get_username()
        count = administration.add_queues(entered["queue_group"], entered["queues"], **about, by=by)
        text = ngettext("%(count)d queue was added.", "%(count)d queues were added.", count)
        self.message_user(request, text % {"count": count}, messages.SUCCESS)

    def display_name(self, row: Any) -> str:
        return f"{row.queue_group} / {row.queue_id}"

    @admin.display(description=_("owner"))
    def owner(self, queue: Any) -> str:
        if queue.cur_server_id is None:
            return gettext("nobody")
        if queue.micros_left is None:  # its row is gone
            return f"#{queue.cur_server_id}"
        name = link_to_page(self.admin_site, Server, queue.cur_server_id, queue.cur_server)
        return lines(name, "" if queue.micros_left > 0 else gettext("judged dead"))

    @admin.display(description=_("why nobody has it"))
    def why(self, queue: Any) -> str:
        alive = queue_group(queue.queue_group.name).alive
        return why_no_owner(queue.labels, [one.as_possible_owner for one in alive], queue.pin)

    @admin.display(description=_("moves"))
    def moves(self, queue: Any) -> str:
        wanted = {"queue_group": queue.queue_group.name, "q": queue.queue_id}
        return link_to_list(self.admin_site, Move, gettext("where it has been, and why"), **wanted)

    @admin.display(description=_("asked for by"))
    def asked_for_by(self, queue: Any) -> str:
        if queue.micros_asked is None:
            return ""
        asked = gettext("to be removed") if queue.is_retiring else gettext("nobody")
        if queue.req_server is not None:
            asked = link_to_page(self.admin_site, Server, queue.req_server_id, queue.req_server)
        return lines(asked, for_time_since(queue.micros_asked))
