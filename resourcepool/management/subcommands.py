"""Commands with subcommands: queries, which only show something, and actions, which change something.

``--watch`` repeats a query until Ctrl-C, even while the database is unavailable.
"""

import argparse
import datetime
import re
from collections.abc import Callable, Collection, Iterable
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError, InterfaceError, connections
from rich.console import Group
from rich.live import Live

from resourcepool import options as checked
from resourcepool.db.threads import interruptible_sleep
from resourcepool.events import localized
from resourcepool.exceptions import ResourcePoolError
from resourcepool.management.arguments import Argument, add, arg, flag, operation_arguments
from resourcepool.management.base import OperatorCommand, actor
from resourcepool.management.layout import one_line, printable_lines
from resourcepool.operations import Operation
from resourcepool.status.times import local_time
from resourcepool.translation import gettext as _

Report = tuple[Any, Iterable[Any]]
"""Data for ``--json``, and the same as tables and lines."""


def watch_arguments(**default: Any) -> list[Argument]:
    """Return ``--watch`` and ``--json``, which ``watch`` reads; ``default``: see ``add_argument``."""
    about = _("repeat every SECONDS (default: 2) until Ctrl-C")
    return [
        arg("--watch", about, nargs="?", type=float, const=2.0, metavar="SECONDS", **default),
        arg("--json", _("print one JSON object; with --watch, one per line"), action="store_true", **default),
    ]


def watch(command: OperatorCommand, read: Callable[[], Report], options: dict[str, Any]) -> None:
    """Show the report that ``read`` returns, once; with ``--watch`` until Ctrl-C, each with the time.

    On a terminal each report replaces the one before.
    """
    if options["watch"] is None:
        command.show(*read())
        return
    seconds = checked.seconds("--watch", options["watch"], least=0.2)
    is_live = command.stdout.isatty() and not options["json"]
    try:
        with Live(console=command.printer, auto_refresh=False) if is_live else nullcontext() as live:
            while True:
                _show(command, read, live)
                interruptible_sleep(seconds)
    except KeyboardInterrupt:
        return  # the normal end


def _show(command: OperatorCommand, read: Callable[[], Report], live: Live | None) -> None:
    """Show one report; if the database cannot be read, its error."""
    now = local_time(datetime.datetime.now(datetime.UTC))
    try:
        data, parts = read()
    except (ResourcePoolError, DatabaseError, InterfaceError) as error:
        connections.close_all()
        data, parts = None, [printable_lines(localized(error))]
    if live:
        live.update(Group(now, *parts), refresh=True)
    elif data is None:
        command.stderr.write(*parts)
    else:
        command.show(data, [now, *parts])
        command.stdout.flush()


Options = dict[str, Any]

NEGATIVE = re.compile(r"-(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$", re.IGNORECASE | re.ASCII)


class Subcommand(NamedTuple):
    """A subcommand.

    Attributes:
        about: its description in --help.
        do: takes the options; for a query, returns a ``Report``.
        prints_json: whether an action has ``--json``, as all queries do.
    """

    name: str
    about: str
    do: Callable[[Options], Any]
    arguments: tuple[Argument, ...]
    is_query: bool = False
    prints_json: bool = False


def query(name: str, about: Any, read: Callable[[Options], Report], *arguments: Argument) -> Subcommand:
    """Return a subcommand that only shows something; it also has ``--watch`` and ``--json``."""
    return Subcommand(name, str(about), read, arguments, is_query=True)


def action(
    name: str, about: Any, do: Callable[[Options], None], *arguments: Argument, json: bool = False
) -> Subcommand:
    """Return a subcommand that changes something."""
    return Subcommand(name, str(about), do, arguments, prints_json=json)


def operates(
    operation: Operation,
    do: Callable[[Operation, Options], None],
    *arguments: Argument,
    name: str = "",
    about: str = "",
) -> Subcommand:
    """Return the subcommand of an operation, with its options; ``name``, ``about``: in place of its name and title."""
    options = operation_arguments([operation], requires=True)
    run = partial(do, operation)
    return action(name or operation.name, about or operation.title, run, *arguments, *options)


def page_arguments(most: int) -> list[Argument]:
    limit = _("rows per page (default: %d)") % most
    return [
        arg("--after", _("only names after this one, for the next page"), default="", metavar="NAME"),
        arg("--limit", limit, type=int, default=most, metavar="N"),
    ]


class CommandGroup(OperatorCommand):
    """A command with ``subcommands``. The first one, a query, is the default."""

    def subcommands(self) -> Iterable[Subcommand]:
        raise NotImplementedError

    def add_arguments(self, parser: CommandParser) -> None:
        add(parser, watch_arguments())
        about = _("see each with --help")
        parsers = parser.add_subparsers(dest="do", metavar="SUBCOMMAND", title=_("subcommands"), help=about)
        self._subcommands = {subcommand.name: subcommand for subcommand in self.subcommands()}
        for subcommand in self._subcommands.values():
            sub = parsers.add_parser(subcommand.name, help=subcommand.about, description=subcommand.about)
            sub._negative_number_matcher = NEGATIVE  # argparse would take -1e300 for an option
            add(sub, subcommand.arguments)
            if subcommand.is_query:
                add(sub, watch_arguments(default=argparse.SUPPRESS))
            elif subcommand.prints_json:
                add(sub, [flag("--json", _("print one JSON object"), default=argparse.SUPPRESS)])
        # Without a subcommand the parser sets no options of the first one, so give the parser its defaults.
        first = next(iter(self._subcommands))
        arguments = parsers.choices[first]._actions
        defaults = {
            argument.dest: argument.default
            for argument in arguments
            if argument.default is not argparse.SUPPRESS
        }
        parser.set_defaults(do=first, **defaults)

    def run(self, **options: Any) -> None:
        subcommand = self._subcommands[options["do"]]
        if subcommand.is_query:
            watch(self, lambda: subcommand.do(options), options)
            return
        if options["watch"] is not None or (options["json"] and not subcommand.prints_json):
            queries = ", ".join(
                subcommand.name for subcommand in self._subcommands.values() if subcommand.is_query
            )
            raise CommandError(_("--watch and --json work only with %s; nothing was changed") % queries)
        subcommand.do(options)

    def operate(
        self,
        operation: Operation,
        rows: Any,
        names: Collection[str],
        answered: Options,
        *,
        also: str = "",
        longest: int = 60,
    ) -> None:
        """Run ``operation`` on the rows of these names; raises CommandError unless all of them were changed.

        Args:
            also: another error, as a sentence.
            longest: the number of characters that are shown of a name.
        """
        applied = operation.apply([rows], answered, actor=actor(), found=len(names)).or_raise()
        for text in applied.done_messages(rows.model, [one_line(name, longest) for name in names]):
            self.stdout.write(text)
        if applied.skipped or also:
            raise CommandError(" ".join(filter(None, (applied.skipped_message, also))))
