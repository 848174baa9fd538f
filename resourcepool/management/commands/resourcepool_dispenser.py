"""``manage.py resourcepool_dispenser``: the status of dispensers, and operator actions."""

from collections.abc import Iterator

from resourcepool.exceptions import BadOption
from resourcepool.management.arguments import arg, flag, yes
from resourcepool.management.subcommands import Options, Subcommand, action, operates
from resourcepool.management.work_commands import WorkCommand
from resourcepool.operations import Operation
from resourcepool.operations.taskqueue import DISCARD, RETRY, REVOKE
from resourcepool.status.work.dispensers import SYSTEM
from resourcepool.taskqueue.dispenser.dispenser import TaskDispenser
from resourcepool.taskqueue.dispenser.models import Bucket, DispenserTask
from resourcepool.translation import gettext as _, gettext_lazy


class Command(WorkCommand):
    system, work = SYSTEM, DispenserTask
    work_operations = (RETRY, DISCARD)
    show_help = gettext_lazy("shows all dispensers, or one; the default")
    list_word = ("tasks", gettext_lazy("lists the tasks of a dispenser, by key"))
    about = gettext_lazy(
        "Shows each dispenser: how many tasks are ready, assigned and failed, how many buckets workers have, and why"
        " nothing is handed out; pauses and resumes dispensers, adds, retries and discards tasks, revokes buckets."
    )
    example = (
        "manage.py resourcepool_dispenser\n"
        "manage.py resourcepool_dispenser show reviews --watch 5\n"
        "manage.py resourcepool_dispenser tasks reviews --state failed\n"
        "manage.py resourcepool_dispenser pause reviews\n"
        "manage.py resourcepool_dispenser add reviews film-101 5.0 film-102 1.0\n"
        "manage.py resourcepool_dispenser revoke reviews alice\n"
        "manage.py resourcepool_dispenser retry reviews --state failed\n"
        "manage.py resourcepool_dispenser discard reviews film-101 --reason 'no such film'\n"
        "manage.py resourcepool_dispenser clear reviews"
    )

    def subcommands(self) -> Iterator[Subcommand]:
        yield from super().subcommands()
        buckets = arg("bucket", _("names of buckets (the workers' names)"), nargs="+")
        yield operates(REVOKE, self.revoke, self.name, buckets)
        tasks = arg("tasks", _("keys, each with its score"), nargs="+", metavar="KEY SCORE")
        new = flag("--new", _("create the dispenser if it does not exist"))
        adds = _("adds tasks, and changes the scores of ready ones")
        yield action("add", adds, self.add, self.name, tasks, new)
        clears = _("removes all ready tasks; workers keep theirs")
        yield action("clear", clears, self.clear, self.name, yes())

    def revoke(self, operation: Operation, options: Options) -> None:
        name = self.known(options).name
        rows = Bucket.objects.using(self.rows.db).filter(dispenser=name)
        self.operate_on_named(operation, rows, "name", set(options["bucket"]), {}, name)

    def add(self, options: Options) -> None:
        if not options["new"]:
            try:
                self.known(options)
            except BadOption as error:
                allowed = _("%s; --new creates it") % error.allowed
                raise BadOption(error.name, error.value, allowed) from None
        try:
            count = TaskDispenser(options["dispenser"]).add_many(_scores(options["tasks"]))
        except BadOption as error:
            raise error.of("KEY SCORE" if error.name == "mapping" else error.name) from None
        values = {"count": count, "others": len(options["tasks"]) // 2 - count}
        self.stdout.write(_("new: %(count)d; existing: %(others)d") % values)

    def clear(self, options: Options) -> None:
        pool = TaskDispenser(self.known(options).name)
        self.confirm(_("Remove all ready tasks (%s)?") % f"{pool.size():,}", yes=options["yes"])
        self.stdout.write(_("removed: %d") % pool.clear())


def _scores(words: list[str]) -> dict[str, float]:
    """Return {key: score} from the words KEY SCORE KEY SCORE ..; raises BadOption."""
    keys, scores = words[::2], dict[str, float]()
    if len(words) % 2:
        raise BadOption("KEY SCORE", words[-1], _("a score after each key, such as film-101 5.0"))
    if len(set(keys)) < len(keys):
        raise BadOption("KEY SCORE", f"{len(keys)} keys", because=_("each key once"))
    for key, text in zip(keys, words[1::2], strict=True):
        try:
            scores[key] = float(text)
        except ValueError:
            raise BadOption("KEY SCORE", text, _("a finite number")) from None
    return scores
