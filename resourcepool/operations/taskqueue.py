"""What operators do to streams, dispensers and topics, to their tasks and timers, and to buckets."""

from dataclasses import replace

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from resourcepool.operations.fields import TextField
from resourcepool.operations.operation import Operation
from resourcepool.taskqueue.abstract import PausableQuerySet, WorkQuerySet
from resourcepool.taskqueue.dispenser.models import BucketQuerySet
from resourcepool.taskqueue.timers.models import Timer, TimerQuerySet

REASON = TextField(name="reason", label=_("Reason"), max_length=200, help=_("One line for whoever asks later."))

PAUSE = Operation(
    name="pause",
    button=_("Pause"),
    title=_("Pause (begin nothing more)"),
    effect=_(
        "Within about three seconds no more tasks or timers are begun or handed out. Running ones go on to their end,"
        " and workers keep the tasks that they have."
    ),
    do=PausableQuerySet.pause,
    applicable=lambda rows: rows.filter(is_paused=False),
    is_offered=lambda row: not row.is_paused,
    done_message=ngettext_lazy("%(count)d was paused.", "%(count)d were paused.", "count"),
    skipped_message=_("%(count)d skipped: paused already."),
)
RESUME = Operation(
    name="resume",
    button=_("Resume"),
    title=_("Resume (end a pause)"),
    effect=_("Within about three seconds it goes on. Timers that came due meanwhile are late."),
    do=PausableQuerySet.resume,
    applicable=PausableQuerySet.paused,
    is_offered=lambda row: bool(row.is_paused),
    done_message=ngettext_lazy("%(count)d was resumed.", "%(count)d were resumed.", "count"),
    skipped_message=_("%(count)d skipped: not paused."),
)
RETRY = Operation(
    name="retry",
    button=_("Retry"),
    title=_("Retry (once more, in its old place)"),
    effect=_("It is ready again at once, as if it had never failed. In a blocked stream it runs next."),
    fields=(replace(REASON, is_required=False),),
    do=WorkQuerySet.retry,
    applicable=WorkQuerySet.failed,
    is_offered=lambda work: work.state in work.failed_states,
    done_message=ngettext_lazy("%(count)d is ready again.", "%(count)d are ready again.", "count"),
    skipped_message=_("%(count)d skipped: not failed."),
)
DISCARD = Operation(
    name="discard",
    button=_("Discard"),
    title=_("Discard (finish it without running it)"),
    effect=_(
        "It does not run any more, unless somebody retries it. What runs, or is assigned to a worker, is left alone."
    ),
    fields=(REASON,),
    do=WorkQuerySet.discard,
    applicable=WorkQuerySet.discardable,
    is_offered=lambda work: work.state in work.discardable_states,
    done_message=ngettext_lazy("%(count)d was discarded.", "%(count)d were discarded.", "count"),
    skipped_message=_("%(count)d skipped: running, assigned, or finished already."),
)
REVOKE = Operation(
    name="revoke",
    button=_("Free"),
    title=_("Free (return its tasks to the pool)"),
    effect=_(
        "Its tasks can be handed to others at once. What its worker still reports about them is refused as stale; the"
        " worker itself is not stopped, so do this when it is dead or stuck."
    ),
    do=BucketQuerySet.revoke,
    done_message=ngettext_lazy("%(count)d was freed.", "%(count)d were freed.", "count"),
    skipped_message=_("%(count)d skipped: ended already."),
)
FIRE = Operation(
    name="fire",
    button=_("Fire now"),
    title=_("Fire now (do not wait for its moment)"),
    effect=_("It is due at once. A recurring one goes on from there: by its interval, or at its next moment."),
    do=TimerQuerySet.fire,
    applicable=TimerQuerySet.waiting,
    is_offered=lambda timer: timer.state == Timer.State.PENDING,
    done_message=ngettext_lazy("%(count)d is due now.", "%(count)d are due now.", "count"),
    skipped_message=_("%(count)d skipped: due already, running, or over."),
)
CANCEL = Operation(
    name="cancel",
    button=_("Cancel"),
    title=_("Cancel (it does not fire)"),
    effect=_("It does not fire, or not again: a recurring one that runs goes on to the end of this run."),
    do=TimerQuerySet.cancel,
    applicable=TimerQuerySet.cancellable,
    is_offered=lambda timer: timer.finished_at is None,
    done_message=ngettext_lazy("%(count)d was cancelled.", "%(count)d were cancelled.", "count"),
    skipped_message=_("%(count)d skipped: running, or over."),
)
