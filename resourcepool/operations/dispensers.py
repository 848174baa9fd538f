"""What an operator does to buckets; pause, resume, retry and discard are in ``operations.work``."""

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from resourcepool.operations.operation import Operation
from resourcepool.taskqueue.dispenser.models import BucketQuerySet

FREE = Operation(
    name="free",
    button=_("Free"),
    title=_("Free (return its tasks to the pool)"),
    effect=_(
        "Its tasks can be handed to others at once. What its worker still reports about them is refused as stale; the"
        " worker itself is not stopped, so do this when it is dead or stuck."
    ),
    do=BucketQuerySet.free,
    done=ngettext_lazy("%(count)d was freed.", "%(count)d were freed.", "count"),
    otherwise=_("%(count)d skipped: ended already."),
)
