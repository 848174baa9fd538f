"""Tasks of dispensers in the admin: to be read, retried and discarded."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.dispensers.buckets import DispenserFilter
from resourcepool.admin.filters import choice, typed
from resourcepool.admin.generic import ByWholeName, ReadOnlyAdmin
from resourcepool.admin.streams.asking import AskingByRows
from resourcepool.admin.timeline import Timelined
from resourcepool.admin.words import moments, reasons
from resourcepool.operations.operation import by_name
from resourcepool.operations.work import DISCARD, RETRY
from resourcepool.taskqueue.dispenser.models import Bucket, Dispenser, DispenserTask

State = DispenserTask.State
CSS = {State.READY: "free", State.ASSIGNED: "leased", State.DONE: "free", State.DISCARDED: "draining"}


def _in_buckets_named(tasks: Any, text: str) -> Any:
    return tasks.filter(bucket_id__in=Bucket.objects.using(tasks.db).filter(name=text).values("pk"))


StateFilter = choice("state", _("state"), State.choices)
BucketFilter = typed("bucket", _("bucket"), _("its name"), _in_buckets_named)


@admin.register(DispenserTask)
class DispenserTaskAdmin(ByWholeName, Timelined, ReadOnlyAdmin, AskingByRows):
    """The newest tasks first; of one dispenser with the filter."""

    list_display = (
        *("key", "dispenser", "score", "colored", "bucket", "expirations", reasons("outcome", _("outcome"))),
        *(moments("added_at", _("added at")), moments("finished_at", _("finished at"))),
    )
    fields = (
        *("dispenser", "key", "score", "colored", list_display[6], "bucket", "expirations"),
        *(moments("added_at", _("added at")), moments("assigned_at", _("assigned at"))),
        *(moments("finished_at", _("finished at")), "fence"),
    )
    list_filter = (DispenserFilter, StateFilter, BucketFilter)
    list_select_related = ("dispenser", "bucket")
    search_fields = ("key",)
    search_help_text = _("The whole key of a task.")
    actions = ()
    operations = by_name(RETRY, DISCARD)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find tasks by their whole key, in each dispenser the way the index has them."""
        of_all = queryset.filter(dispenser_id__in=Dispenser.objects.using(queryset.db).values("pk"))
        return super().get_search_results(request, of_all if search_term.strip() else queryset, search_term)

    @admin.display(description=_("state"))
    def colored(self, task: Any) -> str:
        """Show its state."""
        css = CSS.get(task.state, "quarantined")
        return format_html('<span class="resourcepool-state {}">{}</span>', css, task.get_state_display())
