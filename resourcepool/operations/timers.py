"""Each act of an operator on topics and their timers, declared once; retry and discard are those of streams."""

from dataclasses import replace

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from resourcepool.operations import streams
from resourcepool.operations.operation import Operation
from resourcepool.taskqueue.timers.models import Timer, TimerQuerySet, TopicQuerySet

PAUSE = replace(
    streams.PAUSE,
    title=_("Pause (begin no more timers)"),
    effect=_(
        "Within about three seconds no more timers are begun; those that come due wait. Running ones go on to"
        " their end."
    ),
    do=TopicQuerySet.pause,
)
RESUME = replace(
    streams.RESUME,
    effect=_("Within about three seconds timers fire again; those that came due meanwhile are late."),
    do=TopicQuerySet.resume,
)
RETRY = replace(
    streams.RETRY,
    title=_("Retry (fire it again)"),
    effect=_("It is due again at once, with all of its retries."),
    do=TimerQuerySet.retry,
    concerned=TimerQuerySet.failed,
    is_offered=lambda timer: timer.state in Timer.failed_states,
)
DISCARD = replace(
    streams.DISCARD,
    title=_("Discard (end it without a firing)"),
    effect=_("It does not fire any more, unless somebody retries it. Running timers are left alone."),
    do=TimerQuerySet.discard,
    concerned=TimerQuerySet.discardable,
    is_offered=lambda timer: timer.state in Timer.discardable_states,
)
FIRE = Operation(
    name="fire",
    button=_("Fire now"),
    title=_("Fire now (do not wait for its moment)"),
    effect=_("It is due at once. A recurring one goes on from there: by its interval, or at its next moment."),
    do=TimerQuerySet.fire,
    concerned=TimerQuerySet.waiting,
    is_offered=lambda timer: timer.state == Timer.State.PENDING,
    done=ngettext_lazy("%(count)d is due now.", "%(count)d are due now.", "count"),
    otherwise=ngettext_lazy(
        "%(count)d was left alone: due already, running, or over.",
        "%(count)d were left alone: due already, running, or over.",
        "count",
    ),
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
    otherwise=ngettext_lazy(
        "%(count)d was left alone: running, or over.", "%(count)d were left alone: running, or over.", "count"
    ),
)
