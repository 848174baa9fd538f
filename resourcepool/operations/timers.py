"""What an operator does to timers alone; pause, resume, retry and discard are in ``operations.work``."""

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from resourcepool.operations.operation import Operation
from resourcepool.taskqueue.timers.models import Timer, TimerQuerySet

FIRE = Operation(
    name="fire",
    button=_("Fire now"),
    title=_("Fire now (do not wait for its moment)"),
    effect=_("It is due at once. A recurring one goes on from there: by its interval, or at its next moment."),
    do=TimerQuerySet.fire,
    concerned=TimerQuerySet.waiting,
    is_offered=lambda timer: timer.state == Timer.State.PENDING,
    done=ngettext_lazy("%(count)d is due now.", "%(count)d are due now.", "count"),
    otherwise=_("%(count)d skipped: due already, running, or over."),
)
CANCEL = Operation(
    name="cancel",
    button=_("Cancel"),
    title=_("Cancel (it does not fire)"),
    effect=_("It does not fire, or not again: a recurring one that runs goes on to the end of this run."),
    do=TimerQuerySet.cancel,
    concerned=TimerQuerySet.cancellable,
    is_offered=lambda timer: timer.finished_at is None,
    done=ngettext_lazy("%(count)d was cancelled.", "%(count)d were cancelled.", "count"),
    otherwise=_("%(count)d skipped: running, or over."),
)
