"""What the surfaces show of the topics of timers."""

from resourcepool.status.alarm import ABOUT_TIMERS, AlarmKind
from resourcepool.status.sections import WORK
from resourcepool.status.system import NamedSystem, Panel, RowList, count, gauge, seconds, text
from resourcepool.status.systems.streams import FINISHED
from resourcepool.status.work.timers import TOPICS, timer_alarms
from resourcepool.taskqueue.timers.models import Timer, TimerNode
from resourcepool.translation import gettext_lazy as _, gettext_noop

UNFINISHED, DUE = (RowList(name, Timer, {"status": name}) for name in ("unfinished", "due"))
DEAD = RowList("dead", Timer, {"status": Timer.State.DEAD.value})
SYSTEM = NamedSystem(
    details=(Timer,),
    reader=TOPICS,
    figures=(
        text(_("topic"), "name"),
        count(_("nodes"), lambda one: len(one.nodes), RowList("nodes", TimerNode, None)),
        count(_("pending"), "pending", UNFINISHED, ("pending_timers", "Timers that do not run yet.")),
        seconds(_("next in"), "next_in"),
        count(_("due"), "due", DUE, ("due_timers", "Timers that are due.")),
        seconds(_("late by"), lambda one: one.late or None),
        gauge("late_seconds", "Time for which the first timer has been due.", "late"),
        count(_("running"), "running", gauge=("running_timers", "Running timers.")),
        *FINISHED,
        count(_("dead-letter"), "dead", DEAD, ("dead_timers", "Failed timers to retry or discard.")),
        gauge("nodes", "Live timer nodes of the topic.", lambda one: len(one.nodes)),
    ),
    none_yet=gettext_noop("No timers or topics yet: the first timer creates its topic."),
    alarms=lambda statuses, limits: timer_alarms(statuses, limits.late_timer),
    section=WORK,
    subject=ABOUT_TIMERS,
    alarm_lists={
        AlarmKind.UNCLAIMED_TIMERS: RowList("handed", Timer, {"status": "handed"}),
        AlarmKind.DEAD_TIMERS: DEAD,
        None: DUE,
    },
    alarm_operations={
        AlarmKind.DEAD_TIMERS: ("retry", "discard"),
        AlarmKind.NO_NODE: ("pause",),
        AlarmKind.LATE_TIMERS: ("cancel",),
    },
    panel=Panel(
        _("Timers"),
        _("one-time and recurring"),
        order=50,
        id_prefix="rpt",
        html_id="rp-timers",
        css="rp-topics",
        details=Timer,
    ),
)
