"""What the commands of streams and of dispensers have in common: acts on tasks that are named by key or by state."""

from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from typing import Any

from django.core.management.base import CommandError
from django.db import connections
from django.utils.translation import gettext as _

from resourcepool.database.retry import retrying
from resourcepool.exceptions import BadOption
from resourcepool.management.base import OperatorCommand, actor
from resourcepool.operations.operation import Operation

MOST_KEYS = 10_000
NAMED = 5  # keys in an error


class TasksCommand(OperatorCommand):
    """A command that does ``operations`` to tasks of one stream or dispenser."""

    def operate_on_tasks(self, operation: Operation, name: str, tasks: Any, options: dict[str, Any]) -> None:
        """Do it to those of ``tasks`` that the options name; raises CommandError, BadOption.

        Args:
            name: of the stream or dispenser that has the tasks.
            tasks: all of its tasks.
        """
        entered = {line.name: line.checked(options[line.name]) for line in operation.fields}
        keys = set(options["key"])
        if options["state"] is not None:
            keys = self._of_a_state(tasks, operation, name, options)
        if not 0 < len(keys) <= MOST_KEYS:
            raise BadOption("key", len(keys), _("1 to %s keys, or --state") % f"{MOST_KEYS:,}")
        found = _keys(tasks.filter(key__in=keys))
        self.operate(operation, tasks.filter(key__in=found), len(found), entered, _unknown(name, keys - found))

    def operate(
        self, operation: Operation, rows: Any, asked: int, entered: dict[str, Any], told: str = ""
    ) -> None:
        """Do it to ``rows``, which are ``asked`` many; raises CommandError unless it changed all of them.

        Args:
            told: what else was wrong, in a sentence.
        """
        done = retrying(connections[rows.db], lambda: operation.do(rows, actor=actor(), **entered))
        if done:
            self.stdout.write(operation.done % {"count": done})
        left = operation.otherwise % {"count": asked - done} if asked > done else ""
        if left or told:
            raise CommandError(" ".join(filter(None, (left, told))))

    def _of_a_state(self, tasks: Any, operation: Operation, name: str, options: dict[str, Any]) -> set[str]:
        """Return the keys of the tasks in a state, if the operator confirms it."""
        if options["key"]:
            raise BadOption("key", options["key"], _("keys or --state, not both"))
        keys = _keys(tasks.filter(state=options["state"]).in_order()[:MOST_KEYS])
        if not keys:
            raise CommandError(_("no task of %(stream)s is in that state") % {"stream": name})
        told = {"act": operation.button, "count": f"{len(keys):,}"}
        self.ask(_("%(act)s all %(count)s?") % told, yes=options["yes"])
        return keys


def add_tasks(act: ArgumentParser, operation: Operation, states: Sequence[str]) -> None:
    """Add what names tasks, and what ``operation`` asks."""
    act.add_argument("key", nargs="*", help=_("keys of tasks"))
    act.add_argument("--state", choices=states, help=_("all tasks in this state, up to 10,000"))
    act.add_argument("--yes", action="store_true", help=_("do not ask"))
    for line in operation.fields:
        act.add_argument(f"--{line.name}", required=line.is_needed, help=str(line.help))


def _keys(tasks: Any) -> set[str]:
    rows: Iterable[str] = tasks.values_list("key", flat=True)
    return set(retrying(connections[tasks.db], lambda: list(rows)))


def _unknown(name: str, keys: set[str]) -> str:
    if not keys:
        return ""
    some = ", ".join(sorted(keys)[:NAMED]) + (" .." if len(keys) > NAMED else "")
    return _("%(stream)s has no task with this key: %(keys)s") % {"stream": name, "keys": some}
