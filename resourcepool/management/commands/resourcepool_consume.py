"""``manage.py resourcepool_consume oracle``: runs the tasks of a stream in order while this process leads."""

from typing import Any

from django.utils.module_loading import autodiscover_modules

from resourcepool.management.arguments import Argument, arg
from resourcepool.management.long_running import LongRunningCommand
from resourcepool.taskqueue.consumer import Consumer
from resourcepool.translation import gettext as _, gettext_lazy


class Command(LongRunningCommand):
    about = gettext_lazy(
        "Runs the tasks of a stream in order while this process leads, and waits as a standby while another one"
        " leads. Start it on several hosts. Handlers come from the module task_handlers of each installed app."
        " SIGTERM or Ctrl-C stops it once running tasks have finished."
    )
    example = "manage.py resourcepool_consume oracle\nmanage.py resourcepool_consume oracle --grace 120"
    exit_codes: Any = gettext_lazy(
        "Exit codes: 0 stopped; 1 refused; 2 invalid arguments; 75 a running task was cut off: start it again."
    )

    def arguments(self) -> list[Argument]:
        return [arg("stream", _("the name of a stream")), *super().arguments()]

    def run(self, **options: Any) -> None:
        autodiscover_modules("task_handlers")
        consumer = Consumer(options["stream"], grace=options["grace"])
        self.serve(
            consumer,
            _("consuming %(stream)s; press Ctrl-C or send SIGTERM to stop") % {"stream": consumer.stream},
        )
