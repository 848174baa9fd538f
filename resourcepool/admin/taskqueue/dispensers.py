"""Dispensers in the admin, their buckets and their tasks."""

from typing import Any

from django.contrib import admin
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

from resourcepool.admin.base import ExactSearchMixin, ReadOnlyAdmin
from resourcepool.admin.columns import badge, countdown, link_to_list
from resourcepool.admin.containers import ContainerAdmin, WorkAdmin
from resourcepool.admin.filters import choice_filter, text_filter
from resourcepool.admin.operations_mixin import OperationsAdminMixin
from resourcepool.db.dialect import DbNow
from resourcepool.db.rows import count_groups
from resourcepool.operations.operation import by_name
from resourcepool.operations.taskqueue import REVOKE
from resourcepool.status.badge import EXPIRED, LIVE
from resourcepool.status.work.dispensers import MAX_COUNTED, SYSTEM
from resourcepool.taskqueue.dispenser.models import Bucket, Dispenser, DispenserTask
from resourcepool.translation import gettext, gettext_lazy as _

State = DispenserTask.State


def _in_buckets_named(tasks: Any, text: str) -> Any:
    return tasks.filter(bucket_id__in=Bucket.objects.using(tasks.db).filter(name=text).values("pk"))


DispenserFilter = text_filter("dispenser", _("dispenser"))
BucketStatusFilter = choice_filter(
    "status",
    _("state"),
    [("live", _("live")), ("expired", _("expired"))],
    lambda rows, which: rows.filter(**{f"busy_before__{'gt' if which == 'live' else 'lte'}": DbNow()}),
)


@admin.register(Dispenser)
class DispenserAdmin(ContainerAdmin):
    """Dispensers, which only their buttons pause and resume."""

    settings = ("most_expirations", "done_kept")
    work_title = _("First tasks: the failed ones, otherwise the next ones")
    system = SYSTEM

    def first_work(self, row: Any, work: Any) -> Any:
        state = State.FAILED if row.status.failed else State.READY
        return work.filter(state=state).in_order()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether this user may delete it; one with tasks cannot be deleted, and Django would read all."""
        if obj is None or not super().has_delete_permission(request, obj):
            return False
        return not (obj.tasks.exists() or obj.buckets.exists())


@admin.register(Bucket)
class BucketAdmin(ExactSearchMixin, ReadOnlyAdmin, OperationsAdminMixin):
    """Buckets, newest first; a worker has one per dispenser."""

    list_display = ("name", "dispenser", "status_badge", "holds", "fence")
    fields = ("dispenser", "name", "holder", "status_badge", "holds", "fence")
    list_filter = (DispenserFilter, BucketStatusFilter)
    list_select_related = ("dispenser",)
    search_fields = ("name",)
    search_help_text = _("The full name of a bucket (its worker's name).")
    actions = ()
    operations = by_name(REVOKE)
    time_annotations = {"micros_left": "busy_before"}

    def operate_view(self, request: HttpRequest, object_id: str, name: str, back: str = "") -> HttpResponse:
        """Confirm and run the operation, then go to the list: a revoked bucket has no page."""
        return super().operate_view(request, object_id, name, back or self.page_url("changelist"))

    def load_column_values(self, rows: Any) -> None:
        buckets = list(rows)
        if buckets:
            tasks = DispenserTask.objects.using(buckets[0]._state.db)
            groups = [tasks.filter(bucket_id=row.pk).values_list("state")[:MAX_COUNTED] for row in buckets]
            counted = count_groups(connections[tasks.db], groups, "state")
            for row, states in zip(buckets, counted, strict=True):
                row.count = states.total()

    @admin.display(description=_("state"))
    def status_badge(self, row: Any) -> str:
        if row.micros_left <= 0:
            return badge(EXPIRED)
        left = countdown(row.micros_left / 1_000_000, gettext("%s left"), gettext("expired"))
        return format_html("{} {}", badge(LIVE), left)

    @admin.display(description=_("tasks"))
    def holds(self, row: Any) -> str:
        return link_to_list(
            self.admin_site, DispenserTask, row.count, dispenser=row.dispenser_id, bucket=row.name
        )


@admin.register(DispenserTask)
class DispenserTaskAdmin(WorkAdmin):
    list_display = (
        *("key", "dispenser", "score", "status_badge", "bucket", "expirations", "outcome"),
        *("added_at", "finished_at"),
    )
    fields = (
        *("dispenser", "key", "score", "status_badge", "outcome", "bucket", "expirations"),
        *("added_at", "assigned_at", "finished_at", "fence"),
    )
    list_filter = (
        DispenserFilter,
        choice_filter("state", _("state"), State.choices),
        text_filter("bucket", _("bucket"), narrow=_in_buckets_named),
    )
    list_select_related = ("dispenser", "bucket")
    search_fields = ("key",)
    search_help_text = _("The full key of a task.")

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        """Find tasks by their full key, with the index, which begins with the dispenser."""
        of_all = queryset.filter(dispenser_id__in=Dispenser.objects.using(queryset.db).values("pk"))
        return super().get_search_results(request, of_all if search_term.strip() else queryset, search_term)
