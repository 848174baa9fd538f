"""``manage.py resourcepool_dispenser``: how the dispensers stand, and what operators change."""

from typing import Any, ClassVar

from django.db import connections
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from resourcepool.database.retry import retrying
from resourcepool.exceptions import BadOption
from resourcepool.management.on_tasks import TasksCommand
from resourcepool.operations.dispensers import FREE
from resourcepool.operations.operation import by_name
from resourcepool.operations.work import DISCARD, RETRY
from resourcepool.status.dispensers import DISPENSERS
from resourcepool.taskqueue.dispenser.models import Bucket, Dispenser, DispenserTask
from resourcepool.taskqueue.dispenser.pool import TaskPool

State = DispenserTask.State


class Command(TasksCommand):
    place, work = Dispenser, DispenserTask
    places = DISPENSERS
    states = [one for one in State.values if one not in (State.ASSIGNED, State.DONE)]
    on_work = by_name(RETRY, DISCARD)
    lists = "tasks"
    helps: ClassVar = {
        "show": gettext_lazy("shows all dispensers, or one; the default"),
        "tasks": gettext_lazy("lists the tasks of a dispenser, by key"),
    }
    about = gettext_lazy(
        "Shows each dispenser: how many tasks are ready, assigned and failed, how many buckets workers have, and why"
        " nothing is handed out; pauses and resumes dispensers, adds, retries and discards tasks, frees buckets."
    )
    example = (
        "manage.py resourcepool_dispenser\n"
        "manage.py resourcepool_dispenser show reviews --watch 5\n"
        "manage.py resourcepool_dispenser tasks reviews --state failed\n"
        "manage.py resourcepool_dispenser pause reviews\n"
        "manage.py resourcepool_dispenser add reviews film-101 5.0 film-102 1.0\n"
        "manage.py resourcepool_dispenser free reviews alice\n"
        "manage.py resourcepool_dispenser retry reviews --state failed\n"
        "manage.py resourcepool_dispenser discard reviews film-101 --reason 'no such film'\n"
        "manage.py resourcepool_dispenser clear reviews"
    )

    def add_acts(self, acts: Any) -> None:
        """See ``TasksCommand``."""
        told = {
            FREE.name: str(FREE.title),
            "add": _("adds tasks, and gives new scores to those that are ready"),
            "clear": _("removes all tasks that are ready; what workers have, they keep"),
        }
        found = {name: acts.add_parser(name, help=about) for name, about in told.items()}
        for act in found.values():
            act.add_argument("dispenser", help=_("its name"))
        found["add"].add_argument("tasks", nargs="+", metavar="KEY SCORE", help=_("keys, each with its score"))
        found["add"].add_argument("--new", action="store_true", help=_("makes the dispenser if there is none"))
        found[FREE.name].add_argument(
            "bucket", nargs="+", help=_("names of buckets, which are those of workers")
        )
        found["clear"].add_argument("--yes", action="store_true", help=_("do not ask"))

    def do(self, does: str, options: dict[str, Any]) -> None:
        """See ``TasksCommand``."""
        name = options["dispenser"]
        if does == "add":
            count = self._added(str(name), options)
            told = {"count": count, "others": len(options["tasks"]) // 2 - count}
            self.stdout.write(_("new: %(count)d; there already: %(others)d") % told)
        elif does == "clear":
            pool = TaskPool(self.known(name).name)
            self.ask(_("Remove all that are ready (%s)?") % f"{pool.size():,}", yes=options["yes"])
            self.stdout.write(_("removed: %d") % pool.clear())
        elif does == FREE.name:
            self._free(self.known(name), set(options["bucket"]))
        else:
            self.do_operation(does, options)

    def _added(self, name: str, options: dict[str, Any]) -> int:
        if not options["new"]:
            try:
                self.known(name)
            except BadOption as error:
                allowed = _("%s; --new makes it") % error.allowed
                raise BadOption(error.name, error.value, allowed) from None
        try:
            return TaskPool(name).add_many(_scores(options["tasks"]))
        except BadOption as error:
            raise error.of(
                "KEY SCORE" if error.name == "mapping" else error.name
            ) from None  # as it is called here

    def _free(self, dispenser: Dispenser, names: set[str]) -> None:
        rows = Bucket.objects.using(self.using).filter(dispenser=dispenser, name__in=names)
        found = set(retrying(connections[rows.db], lambda: list(rows.values_list("name", flat=True))))
        self.operate(FREE, rows, len(found), {}, self.unknown(dispenser.name, names - found))


def _scores(words: list[str]) -> dict[str, float]:
    """Return {key: score} of the words KEY SCORE KEY SCORE ..; raises BadOption."""
    keys, found = words[::2], dict[str, float]()
    if len(words) % 2:
        raise BadOption("KEY SCORE", words[-1], _("a score after each key, such as film-101 5.0"))
    if len(set(keys)) < len(keys):
        raise BadOption("KEY SCORE", f"{len(keys)} keys", because=_("each key once"))
    for key, text in zip(keys, words[1::2], strict=True):
        try:
            found[key] = float(text)
        except ValueError:
            raise BadOption("KEY SCORE", text, _("a finite number")) from None
    return found
