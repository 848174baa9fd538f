"""Buckets in the admin: which worker has how many tasks, until when; to be freed."""

from typing import Any

from django.contrib import admin
from django.db import connections
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.countdown import countdown
from resourcepool.admin.filters import choice, typed
from resourcepool.admin.generic import ReadOnlyAdmin
from resourcepool.admin.queues.links import to_list
from resourcepool.admin.streams.asking import AskingByRows
from resourcepool.database.tallies import tallies
from resourcepool.dialect import DbNow, MicrosUntil
from resourcepool.operations.dispensers import FREE
from resourcepool.operations.operation import by_name
from resourcepool.status.dispensers import MOST_COUNTED
from resourcepool.taskqueue.dispenser.models import Bucket, DispenserTask

LIVE, EXPIRED = "live", "expired"

DispenserFilter = typed(
    "dispenser", _("dispenser"), _("its name"), lambda rows, text: rows.filter(dispenser_id=text)
)
StandingFilter = choice(
    "standing",
    _("state"),
    [(LIVE, _("live")), (EXPIRED, _("expired"))],
    lambda buckets, standing: (
        buckets.filter(busy_before__gt=DbNow())
        if standing == LIVE
        else buckets.filter(busy_before__lte=DbNow())
    ),
)


@admin.register(Bucket)
class BucketAdmin(ReadOnlyAdmin, AskingByRows):
    """The newest buckets first; a worker has one of each dispenser."""

    list_display = ("name", "dispenser", "colored", "holds", "fence")
    fields = ("dispenser", "name", "holder", "colored", "holds", "fence")
    list_filter = (DispenserFilter, StandingFilter)
    list_select_related = ("dispenser",)
    search_fields = ("name",)
    search_help_text = _("The whole name of a bucket, which is that of its worker.")
    actions = ()
    operations = by_name(FREE)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the buckets with what is left of them, by the database's clock."""
        rows: Any = super().get_queryset(request)
        found: QuerySet[Any] = rows.annotate(left=MicrosUntil("busy_before"))
        return found

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find buckets by their whole name."""
        name = search_term.strip()
        return (queryset.filter(name=name) if name else queryset), False

    def operate_view(self, request: HttpRequest, object_id: str, name: str, back: str = "") -> HttpResponse:
        """Ask, and do it; then go to the list: a bucket that was freed has no page any more."""
        return super().operate_view(request, object_id, name, back or self.url_of("changelist"))

    def note(self, rows: Any) -> None:
        """Count the tasks of each of these."""
        buckets = list(rows)
        if buckets:
            tasks = DispenserTask.objects.using(buckets[0]._state.db)
            groups = [tasks.filter(bucket_id=row.pk).values_list("state")[:MOST_COUNTED] for row in buckets]
            counted = tallies(connections[tasks.db], groups, "state")
            for row, found in zip(buckets, counted, strict=True):
                row.count = found.total()

    @admin.display(description=_("state"))
    def colored(self, row: Any) -> str:
        """Show whether its worker still has its tasks, and for how long."""
        if row.left <= 0:
            return format_html('<span class="resourcepool-state quarantined">{}</span>', gettext("expired"))
        text, over = gettext("%s left"), gettext("expired")
        return format_html(
            '<span class="resourcepool-state leased">{}</span> {}',
            gettext("live"),
            countdown(row.left / 1_000_000, text, over),
        )

    @admin.display(description=_("tasks"))
    def holds(self, row: Any) -> str:
        """Show how many tasks it has, with a link to them."""
        if not hasattr(row, "count"):
            self.note([row])
        return to_list(self.admin_site, DispenserTask, row.count, dispenser=row.dispenser_id, bucket=row.name)
