"""What the surfaces show of dispensers."""

from resourcepool.status.alarm import ABOUT_DISPENSERS, AlarmKind
from resourcepool.status.sections import WORK
from resourcepool.status.system import NamedSystem, Panel, RowList, age, count, counts, gauge, seconds, text
from resourcepool.status.work.dispensers import DISPENSERS, dispenser_alarms
from resourcepool.taskqueue.dispenser.models import Bucket, DispenserTask
from resourcepool.translation import gettext_lazy as _, gettext_noop

TASKS = DispenserTask.State
READY, ASSIGNED, FAILED = (
    RowList(state.value, DispenserTask, {"state": state.value})
    for state in (TASKS.READY, TASKS.ASSIGNED, TASKS.FAILED)
)
SYSTEM = NamedSystem(
    details=(DispenserTask,),
    reader=DISPENSERS,
    figures=(
        text(_("dispenser"), "name"),
        count(_("ready"), "depth", READY, ("ready_tasks", "Tasks ready to be handed out.")),
        seconds(_("oldest"), "oldest", gauge=("oldest_task_seconds", "Age of the oldest of the next tasks.")),
        count(_("assigned"), "assigned", ASSIGNED, ("assigned_tasks", "Tasks in buckets.")),
        counts(lambda one: (one.live, one.expired), _("Buckets live, expired"), RowList("buckets", Bucket, {})),
        count(_("buckets"), "live", heading=""),
        count(_("expired"), "expired", heading=""),
        count(_("done/min"), "done", heading=_("Done per minute")),
        count(_("failed"), "failed", FAILED, ("failed_tasks", "Failed tasks to retry or discard.")),
        gauge("buckets", "Buckets of workers.", "live"),
        age(_("last rebuild"), "rebuilt"),
    ),
    none_yet=gettext_noop("No dispensers yet: a dispenser is created on first use."),
    alarms=lambda statuses, limits: dispenser_alarms(statuses, limits.oldest_task),
    section=WORK,
    subject=ABOUT_DISPENSERS,
    alarm_lists={
        AlarmKind.FAILED_TASKS: FAILED,
        None: READY,
    },
    alarm_operations={
        AlarmKind.FAILED_TASKS: ("retry", "discard"),
        AlarmKind.LATE_TASKS: ("pause",),
    },
    panel=Panel(
        _("Dispensers"),
        _("tasks in buckets"),
        order=30,
        id_prefix="rpd",
        title_of_all=_("All dispensers"),
    ),
)
