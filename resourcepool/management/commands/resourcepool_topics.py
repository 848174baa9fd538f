"""``manage.py resourcepool_topics``: the status of timers, why nothing fires, and operator actions."""

from resourcepool.management.work_commands import WorkCommand
from resourcepool.operations.taskqueue import CANCEL, DISCARD, FIRE, RETRY
from resourcepool.status.work.timers import SYSTEM
from resourcepool.taskqueue.timers.models import Timer
from resourcepool.translation import gettext_lazy


class Command(WorkCommand):
    system, work = SYSTEM, Timer
    work_operations = (FIRE, CANCEL, RETRY, DISCARD)
    show_help = gettext_lazy("shows all topics, or one; the default")
    list_word = ("timers", gettext_lazy("lists the timers of a topic, by name"))
    about = gettext_lazy(
        "Shows each topic: how many timers are pending, due and late, which nodes handle them, and why nothing fires;"
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
