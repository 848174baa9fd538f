"""Operator actions on streams, dispensers and topics, on their tasks and timers, and on buckets."""

from dataclasses import replace

from resourcepool.operations.operation import REASON, Operation, retried
from resourcepool.taskqueue.abstract import PausableQuerySet, WorkQuerySet
from resourcepool.taskqueue.dispenser.models import BucketQuerySet
from resourcepool.taskqueue.timers.models import Timer, TimerQuerySet
from resourcepool.translation import gettext_lazy as _, ngettext_lazy

PAUSE = Operation(
    name="pause",
    button=_("Pause"),
    title=_("Pause (start nothing new)"),
    effect=_(
        "Within about three seconds, no new tasks or timers are started or handed out. Running ones finish, and"
        " workers keep their tasks."
    ),
    do=retried(PausableQuerySet.pause),
    applicable=lambda rows: rows.filter(is_paused=False),
    is_offered=lambda row: not row.is_paused,
    done_message=ngettext_lazy("%(what)s was paused.", "%(what)s were paused.", "count"),
    skipped_message=_("%(count)d skipped: already paused."),
)
RESUME = Operation(
    name="resume",
    is_harmless=True,
    button=_("Resume"),
    title=_("Resume (end the pause)"),
    effect=_("Work continues within about three seconds. Timers that became due during the pause fire late."),
    do=retried(PausableQuerySet.resume),
    applicable=PausableQuerySet.paused,
    is_offered=lambda row: bool(row.is_paused),
    done_message=ngettext_lazy("%(what)s was resumed.", "%(what)s were resumed.", "count"),
    skipped_message=_("%(count)d skipped: not paused."),
)
RETRY = Operation(
    name="retry",
    is_harmless=True,
    button=_("Retry"),
    title=_("Retry (in its old place)"),
    effect=_("It is ready again at once, with its failure counts reset. In a blocked stream it runs next."),
    fields=(replace(REASON, is_required=False),),
    do=retried(WorkQuerySet.retry),
    applicable=WorkQuerySet.failed,
    is_offered=lambda work: work.state in work.failed_states,
    done_message=ngettext_lazy("%(what)s is ready again.", "%(what)s are ready again.", "count"),
    skipped_message=_("%(count)d skipped: not failed."),
)
DISCARD = Operation(
    name="discard",
    is_destructive=True,
    button=_("Discard"),
    title=_("Discard (finish it without running it)"),
    effect=_(
        "It does not run unless an operator retries it. Running work and tasks assigned to a worker are skipped."
    ),
    fields=(REASON,),
    do=retried(WorkQuerySet.discard),
    applicable=WorkQuerySet.discardable,
    is_offered=lambda work: work.state in work.discardable_states,
    done_message=ngettext_lazy("%(what)s was discarded.", "%(what)s were discarded.", "count"),
    skipped_message=_("%(count)d skipped: running, assigned, or already finished."),
)
REVOKE = Operation(
    name="revoke",
    is_destructive=True,
    button=_("Revoke"),
    title=_("Revoke (return its tasks to the pool)"),
    effect=_(
        "Its tasks can be handed to other workers at once. Later reports of its worker are rejected as stale. The"
        " worker is not stopped: use this if it has crashed or is stuck."
    ),
    do=retried(BucketQuerySet.revoke),
    done_message=ngettext_lazy("%(what)s was revoked.", "%(what)s were revoked.", "count"),
    skipped_message=_("%(count)d skipped: already ended."),
)
FIRE = Operation(
    name="fire",
    button=_("Fire now"),
    title=_("Fire now (before its time)"),
    effect=_(
        "The timer is due at once. A recurring timer continues from now by its interval, or at its next scheduled"
        " time."
    ),
    do=retried(TimerQuerySet.fire),
    applicable=TimerQuerySet.waiting,
    is_offered=lambda timer: timer.state == Timer.State.PENDING,
    done_message=ngettext_lazy("%(what)s is due now.", "%(what)s are due now.", "count"),
    skipped_message=_("%(count)d skipped: already due, running, or finished."),
)
CANCEL = Operation(
    name="cancel",
    is_destructive=True,
    button=_("Cancel"),
    title=_("Cancel (do not fire)"),
    effect=_(
        "The timer does not fire. A recurring timer that is running finishes this run and does not fire again."
    ),
    do=retried(TimerQuerySet.cancel),
    applicable=TimerQuerySet.cancellable,
    is_offered=lambda timer: timer.finished_at is None,
    done_message=ngettext_lazy("%(what)s was cancelled.", "%(what)s were cancelled.", "count"),
    skipped_message=_("%(count)d skipped: running or finished."),
)
