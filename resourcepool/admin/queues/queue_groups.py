"""Queue groups in the admin: their settings, and how they stand."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db import DatabaseError, router
from django.db.models import Count, OuterRef, ProtectedError, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from resourcepool import options
from resourcepool.admin.base import ModelForm
from resourcepool.admin.columns import badge, datetime_column, format_datetime, lines, link_to_list
from resourcepool.admin.queues.admin_mixin import PerQueueGroupAdminMixin
from resourcepool.admin.queues.filters import unowned
from resourcepool.exceptions import BadOption
from resourcepool.operations.operation import by_name
from resourcepool.operations.queues import PAUSE, RESUME
from resourcepool.queues.models import MAX_NAME, Move, Queue, QueueGroup, Server

SETTINGS = ("strategy", "heartbeat_every", "judge_dead_after", "reload_every", "handover_timeout")


class QueueGroupForm(ModelForm):
    """Takes the settings; what contradicts each other is refused."""

    def clean_name(self) -> str:
        try:
            return options.text("queue_group", self.cleaned_data["name"], most=MAX_NAME)
        except BadOption:
            message = _("One line of at most %(most)d printable characters.") % {"most": MAX_NAME}
            raise forms.ValidationError(message) from None


@admin.register(QueueGroup)
class QueueGroupAdmin(PerQueueGroupAdminMixin):
    """Settings are edited; that a plan is made, and who plans when, is left to the servers."""

    form = QueueGroupForm
    list_display = ("name", "status_badge", "servers", "queues", "unowned", "generation", "assigned")
    search_fields = ("name",)
    ordering = ("name",)
    fields: ClassVar[Any] = (
        *("name", *SETTINGS, "is_paused", "generation"),
        *(datetime_column("assigned_at", _("last assigned at")), "assigned_by"),
    )
    ways = ("servers", "queues", "unowned", "moves")  # of one that is there
    readonly_fields: ClassVar[Any] = fields[len(SETTINGS) + 1 :]
    operations = by_name(PAUSE, RESUME)

    def get_queryset(self, request: HttpRequest) -> Any:
        queues = Queue.objects.all()
        counts = {"alive": _count(Server.objects.alive()), "amount": _count(queues)}
        return super().get_queryset(request).annotate(**counts, without=_count(queues.filter(unowned())))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return those that no form changes; programs and moves know it by its name."""
        return self.readonly_fields if obj is None else ("name", *self.readonly_fields, *self.ways)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fields if obj is None else (*self.fields, *self.ways)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show the form, and save it; while servers plan for longer than one can wait, say that it is not saved."""
        try:
            return super().changeform_view(request, *args, **kwargs)
        except DatabaseError as error:
            if request.method != "POST":
                raise
            self.message_user(request, gettext("Not saved: %s") % str(error)[:200], messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm, change: bool) -> None:
        """Save it; another strategy makes a new plan due."""
        if change and "strategy" in form.changed_data:
            obj.is_assignment_due = True
        super().save_model(request, obj, form, change)

    def changed_columns(self, form: Any) -> list[str]:
        changed_columns = super().changed_columns(form)
        return [*changed_columns, "is_assignment_due"] if "strategy" in changed_columns else changed_columns

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return what Django asks about; what still has queues or servers is not deleted."""
        if kept := _in_use([one.pk for one in objs]):
            return [], {}, set(), kept
        return super().get_deleted_objects(objs, request)

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Ask, and delete it; a server that registers, or a queue that is added at this moment, prevents it."""
        try:
            return super().delete_view(request, *args, **kwargs)
        except (ProtectedError, DatabaseError) as error:
            self.message_user(request, gettext("Not deleted: %s") % str(error)[:200], messages.ERROR)
            return HttpResponseRedirect(self.page_url("changelist"))

    def display_name(self, row: Any) -> str:
        return str(row)

    @admin.display(description=_("status"))
    def status_badge(self, row: Any) -> str:
        return lines(badge(*_state_of(row)), row.get_strategy_display())

    @admin.display(description=_("servers"))
    def servers(self, row: Any) -> str:
        return link_to_list(self.admin_site, Server, row.alive, queue_group=row.name)

    @admin.display(description=_("queues"))
    def queues(self, row: Any) -> str:
        return link_to_list(self.admin_site, Queue, row.amount, queue_group=row.name)

    @admin.display(description=_("without owner"))
    def unowned(self, row: Any) -> str:
        return link_to_list(self.admin_site, Queue, row.without, queue_group=row.name, status="unowned")

    @admin.display(description=_("moves"))
    def moves(self, row: Any) -> str:
        return link_to_list(self.admin_site, Move, gettext("what went where, and why"), queue_group=row.name)

    @admin.display(description=_("last assigned"))
    def assigned(self, row: Any) -> str:
        return lines(format_datetime(row.assigned_at), row.assigned_by) if row.assigned_at else ""


def _state_of(row: Any) -> tuple[str, str]:
    """Return the state of a queue group: its class in the style sheet, and its text."""
    if row.is_paused:
        return "draining", gettext("paused")
    if not row.amount:
        return "draining", gettext("nothing to do")
    return ("free", gettext("at work")) if row.alive else ("quarantined", gettext("no server"))


def _count(rows: Any) -> Any:
    counted = rows.filter(queue_group=OuterRef("pk")).order_by().values("queue_group").annotate(n=Count("pk"))
    return Coalesce(Subquery(counted.values("n")), 0)


def _in_use(pks: Sequence[int]) -> list[str]:
    """Return a sentence about each of these queue groups that still has queues or servers."""
    text = gettext(
        "%(name)s: %(queues)d queues, %(servers)d servers. Stop the servers, and remove the queues, first."
    )
    rows = QueueGroup.objects.using(router.db_for_write(QueueGroup)).filter(pk__in=pks)
    counted = rows.annotate(n_queues=_count(Queue.objects.all()), n_servers=_count(Server.objects.all()))
    found = counted.exclude(n_queues=0, n_servers=0).values_list("name", "n_queues", "n_servers")
    return [text % dict(zip(("name", "queues", "servers"), row, strict=True)) for row in found]
