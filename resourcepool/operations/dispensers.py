"""Each act of an operator on dispensers, their buckets and tasks, declared once."""

from dataclasses import replace

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from resourcepool.operations import streams
from resourcepool.operations.operation import Operation
from resourcepool.taskqueue.dispenser.models import (
    BucketQuerySet,
    DispenserQuerySet,
    DispenserTask,
    DispenserTaskQuerySet,
)

PAUSE = replace(
    streams.PAUSE,
    title=_("Pause (hand out no more tasks)"),
    effect=_("Workers keep the tasks that they have, and can finish them; none gets more."),
    do=DispenserQuerySet.pause,
)
RESUME = replace(
    streams.RESUME,
    effect=_("The next worker that asks is handed tasks again."),
    do=DispenserQuerySet.resume,
)
RETRY = replace(
    streams.RETRY,
    title=_("Retry (hand it out again)"),
    effect=_("It is in the pool again at once, with its old score, as if it had never failed."),
    do=DispenserTaskQuerySet.retry,
    concerned=DispenserTaskQuerySet.failed,
    is_offered=lambda task: task.state in DispenserTask.failed_states,
)
DISCARD = replace(
    streams.DISCARD,
    title=_("Discard (finish it without handing it out)"),
    effect=_(
        "It is not handed out any more, unless somebody retries or adds it. Assigned tasks are left alone."
    ),
    do=DispenserTaskQuerySet.discard,
    concerned=DispenserTaskQuerySet.discardable,
    is_offered=lambda task: task.state in DispenserTask.discardable_states,
    otherwise=ngettext_lazy(
        "%(count)d was left alone: assigned, or finished already.",
        "%(count)d were left alone: assigned, or finished already.",
        "count",
    ),
)
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
    otherwise=ngettext_lazy(
        "%(count)d was left alone: it has ended.", "%(count)d were left alone: they have ended.", "count"
    ),
)
