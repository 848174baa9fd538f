"""``manage.py resourcepool_topics``: how the timers stand, why nothing fires, and what operators change."""

from django.utils.translation import gettext_lazy

from resourcepool.management.work_commands import WorkCommand
from resourcepool.operations.taskqueue import CANCEL, DISCARD, FIRE, RETRY
from resourcepool.status.work.timers import TOPICS
from resourcepool.taskqueue.timers.models import Timer


class Command(WorkCommand):
    reader, work = TOPICS, Timer
    work_operations = (FIRE, CANCEL, RETRY, DISCARD)
    show_help = gettext_lazy("shows all topics, or one; the default")
    list_word = ("timers", gettext_lazy("lists the timers of a topic, by name"))
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
