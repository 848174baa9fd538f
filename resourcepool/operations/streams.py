"""Each act of an operator on streams and their tasks, declared once."""

from dataclasses import replace

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from resourcepool.operations.fields import Line
from resourcepool.operations.operation import Operation
from resourcepool.taskqueue.models import DISCARDABLE, FAILED, StreamQuerySet, TaskQuerySet

REASON = Line(name="reason", label=_("Reason"), most=200, help=_("One line for whoever asks later."))

PAUSE = Operation(
    name="pause",
    button=_("Pause"),
    title=_("Pause (begin no more tasks)"),
    effect=_("Within about three seconds no more tasks are begun. Running tasks go on to their end."),
    do=StreamQuerySet.pause,
    concerned=lambda rows: rows.filter(is_paused=False),
    is_offered=lambda stream: not stream.is_paused,
    done=ngettext_lazy("%(count)d was paused.", "%(count)d were paused.", "count"),
    otherwise=ngettext_lazy("%(count)d was paused already.", "%(count)d were paused already.", "count"),
)
RESUME = Operation(
    name="resume",
    button=_("Resume"),
    title=_("Resume (end a pause)"),
    effect=_("Its consumer begins tasks again within about three seconds."),
    do=StreamQuerySet.resume,
    concerned=lambda rows: rows.filter(is_paused=True),
    is_offered=lambda stream: bool(stream.is_paused),
    done=ngettext_lazy("%(count)d was resumed.", "%(count)d were resumed.", "count"),
    otherwise=ngettext_lazy("%(count)d was not paused.", "%(count)d were not paused.", "count"),
)
RETRY = Operation(
    name="retry",
    button=_("Retry"),
    title=_("Retry (run it again, in its old place)"),
    effect=_("It is ready again at once, with all of its retries. In a blocked stream it runs next."),
    fields=(replace(REASON, is_needed=False),),
    do=TaskQuerySet.retry,
    concerned=TaskQuerySet.failed,
    is_offered=lambda task: task.state in FAILED,
    done=ngettext_lazy("%(count)d is ready again.", "%(count)d are ready again.", "count"),
    otherwise=ngettext_lazy(
        "%(count)d was left alone: it has not failed.",
        "%(count)d were left alone: they have not failed.",
        "count",
    ),
)
DISCARD = Operation(
    name="discard",
    button=_("Discard"),
    title=_("Discard (finish it without running it)"),
    effect=_("It does not run any more, unless somebody retries it. Running tasks are left alone."),
    fields=(REASON,),
    do=TaskQuerySet.discard,
    concerned=TaskQuerySet.discardable,
    is_offered=lambda task: task.state in DISCARDABLE,
    done=ngettext_lazy("%(count)d was discarded.", "%(count)d were discarded.", "count"),
    otherwise=ngettext_lazy(
        "%(count)d was left alone: running, or finished already.",
        "%(count)d were left alone: running, or finished already.",
        "count",
    ),
)
