"""Queue groups in the admin: their settings and status."""

from collections.abc import Iterable
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from resourcepool import options
from resourcepool.admin.base import ModelForm
from resourcepool.admin.columns import lines, link_to_list
from resourcepool.admin.containers import ProtectedAdminMixin
from resourcepool.admin.operations_mixin import OperationsAdminMixin
from resourcepool.exceptions import BadOption
from resourcepool.operations.operation import by_name
from resourcepool.operations.queues import PAUSE, RESUME, by_queue_group
from resourcepool.queues.models import MAX_NAME, Move, Queue, QueueGroup, Server
from resourcepool.status.queues.queue_groups import queue_groups
from resourcepool.status.queues.system import queue_group_badge
from resourcepool.status.times import format_datetime
from resourcepool.translation import gettext, gettext_lazy as _

SETTINGS = ("strategy", "heartbeat_every", "judge_dead_after", "reload_every", "handover_timeout")


class PerQueueGroupAdminMixin(OperationsAdminMixin):
    """An admin whose operations run once per queue group, each on all of its chosen rows or on none."""

    def display_name(self, row: Any) -> str:
        return f"{row.queue_group}: {row}"

    def parts(self, request: HttpRequest, chosen: Any, operation: Any) -> Iterable[Any]:
        return by_queue_group(chosen.rows)

    def logged_values(self, entered: dict[str, Any]) -> str:
        return ""


class QueueGroupForm(ModelForm):
    """The settings of a queue group; contradictory intervals are refused by its ``clean``."""

    def clean_name(self) -> str:
        try:
            return options.text("queue_group", self.cleaned_data["name"], most=MAX_NAME)
        except BadOption:
            message = _("One line of at most %(most)d printable characters.") % {"most": MAX_NAME}
            raise forms.ValidationError(message) from None


@admin.register(QueueGroup)
class QueueGroupAdmin(ProtectedAdminMixin, PerQueueGroupAdminMixin):
    """Operators edit settings; the servers plan."""

    form = QueueGroupForm
    list_display = ("name", "status_badge", "servers", "queues", "unowned", "generation", "assigned")
    search_fields = ("name",)
    ordering = ("name",)
    fields: ClassVar[Any] = ("name", *SETTINGS)
    has_settings = True
    facts = ("status_badge", "servers", "queues", "unowned", "assigned", "moves")
    operations = by_name(PAUSE, RESUME)

    def load_column_values(self, rows: Any) -> None:
        statuses = {status.pk: status for status in queue_groups([row.name for row in rows], flaps=False)}
        for row in rows:
            row.status = statuses[row.pk]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the read-only fields; the name of an existing row is fixed, as programs and moves refer to it."""
        return () if obj is None else ("name",)

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm, change: bool) -> None:
        """Save it; a change of the strategy makes a plan due."""
        if change and "strategy" in form.changed_data:
            obj.is_assignment_due = True
        super().save_model(request, obj, form, change)

    def changed_columns(self, form: Any) -> list[str]:
        names = super().changed_columns(form)
        return [*names, "is_assignment_due"] if "strategy" in names else names

    def protecting(self) -> dict[Any, str]:
        return {Queue: "queue_group", Server: "queue_group"}

    def display_name(self, row: Any) -> str:
        return str(row)

    @admin.display(description=_("status"))
    def status_badge(self, row: Any) -> str:
        return lines(queue_group_badge(row.status).html, row.get_strategy_display())

    @admin.display(description=_("servers"))
    def servers(self, row: Any) -> str:
        return link_to_list(self.admin_site, Server, len(row.status.alive), queue_group=row.name)

    @admin.display(description=_("queues"))
    def queues(self, row: Any) -> str:
        return link_to_list(self.admin_site, Queue, row.status.queues, queue_group=row.name)

    @admin.display(description=_("unowned"))
    def unowned(self, row: Any) -> str:
        return link_to_list(self.admin_site, Queue, row.status.unowned, queue_group=row.name, status="unowned")

    @admin.display(description=_("moves"))
    def moves(self, row: Any) -> str:
        return link_to_list(self.admin_site, Move, gettext("all moves with reasons"), queue_group=row.name)

    @admin.display(description=_("last assigned"))
    def assigned(self, row: Any) -> str:
        return lines(format_datetime(row.assigned_at), row.assigned_by) if row.assigned_at else gettext("never")
