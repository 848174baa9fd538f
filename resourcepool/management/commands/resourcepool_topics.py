"""``manage.py resourcepool_topics``: how the timers stand, why nothing fires, and what operators change."""

from typing import ClassVar

from django.utils.translation import gettext_lazy

from resourcepool.management.on_tasks import TasksCommand
from resourcepool.operations.operation import by_name
from resourcepool.operations.timers import CANCEL, FIRE
from resourcepool.operations.work import DISCARD, RETRY
from resourcepool.status.timers import TOPICS
from resourcepool.taskqueue.timers.models import Timer, Topic


class Command(TasksCommand):
    place, work = Topic, Timer
    places = TOPICS
    states = [one for one in Timer.State.values if one not in (Timer.State.RUNNING, Timer.State.DONE)]
    on_work = by_name(FIRE, CANCEL, RETRY, DISCARD)
    lists = "timers"
    helps: ClassVar = {
        "show": gettext_lazy("shows all topics, or one; the default"),
        "timers": gettext_lazy("lists the timers of a topic, by name"),
    }
    about = gettext_lazy(
        "Shows each topic of timers: how many are pending, due and late, which nodes are there, and why nothing fires;"
        " pauses and resumes topics; fires, cancels, retries and discards timers."
    )
    example = (
        "manage.py resourcepool_topics\n"
        "manage.py resourcepool_topics timers order.timeout --state dead\n"
        "manage.py resourcepool_topics pause order.timeout\n"
        "manage.py resourcepool_topics fire order.timeout order-42-unpaid\n"
        "manage.py resourcepool_topics retry order.timeout --state dead\n"
        "manage.py resourcepool_topics discard order.timeout order-42-unpaid --reason 'paid by hand'"
    )
