"""What the surfaces show of streams."""

from resourcepool.status.alarm import ABOUT_STREAMS, AlarmKind
from resourcepool.status.sections import WORK
from resourcepool.status.system import NamedSystem, Panel, RowList, count, counts, gauge, seconds, text
from resourcepool.status.work.streams import STREAMS, stream_alarms
from resourcepool.taskqueue.models import Task
from resourcepool.translation import gettext_lazy as _, gettext_noop

UNFINISHED = RowList("unfinished", Task, {"status": "unfinished"})
DEAD = RowList("dead", Task, {"status": Task.State.DEAD.value})
FINISHED = (
    count(_("done/min"), "done", heading=""),
    count(_("failed/min"), "failed", heading=""),
    counts(lambda one: (one.done, one.failed), _("Done, failed per minute")),
)
SYSTEM = NamedSystem(
    details=(Task,),
    reader=STREAMS,
    figures=(
        text(_("stream"), "name"),
        text(_("leader"), "leader"),
        seconds(_("leading for"), "since"),
        count(_("standbys"), "standbys"),
        count(_("unfinished"), "depth", UNFINISHED, ("unfinished_tasks", "Unfinished tasks.")),
        seconds(
            _("oldest"),
            lambda one: one.first and one.first.age,
            gauge=("oldest_task_seconds", "Age of the first unfinished task."),
        ),
        *FINISHED,
        count(_("dead-letter"), "dead", DEAD),
        gauge("dead_tasks", "Failed tasks to retry or discard.", lambda one: one.dead + one.blocked),
        gauge("led", "Whether there is a leader.", lambda one: bool(one.leader)),
        gauge("standbys", "Standby consumers.", "standbys"),
    ),
    none_yet=gettext_noop("No streams yet; add one: `manage.py resourcepool_streams add NAME`"),
    alarms=lambda statuses, limits: stream_alarms(statuses, limits.oldest_task),
    section=WORK,
    subject=ABOUT_STREAMS,
    alarm_lists={
        AlarmKind.BLOCKED: RowList("blocked", Task, {"status": Task.State.BLOCKED.value}),
        AlarmKind.DEAD_TASKS: DEAD,
        None: UNFINISHED,
    },
    alarm_operations={
        AlarmKind.NO_CONSUMER: ("retry", "discard"),  # if it is blocked, too
        AlarmKind.BLOCKED: ("retry", "discard"),
        AlarmKind.DEAD_TASKS: ("retry", "discard"),
        AlarmKind.LATE_TASKS: ("discard",),
    },
    panel=Panel(
        _("Streams"),
        _("tasks in order"),
        order=20,
        id_prefix="rps",
        title_of_all=_("All streams"),
        details=Task,
    ),
)
