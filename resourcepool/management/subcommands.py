"""Commands whose first word says what to do: readings, which can be watched, and acts, which change something."""

import argparse
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from django.core.management.base import CommandError, CommandParser
from django.db import connections
from django.utils.translation import gettext as _

from resourcepool.database.retry import retrying
from resourcepool.management import watch_mode
from resourcepool.management.arguments import Argument, add, arg, flag
from resourcepool.management.base import OperatorCommand, actor
from resourcepool.operations import Operation

Options = dict[str, Any]

NEGATIVE = re.compile(r"-(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$", re.IGNORECASE | re.ASCII)


class Subcommand(NamedTuple):
    """One thing that a command can do.

    Attributes:
        about: what --help says of it.
        do: takes the options; that of a reading returns it, and the same as tables and lines.
        prints_json: whether an act knows ``--json``, as all readings do.
    """

    name: str
    about: str
    do: Callable[[Options], Any]
    arguments: tuple[Argument, ...]
    is_query: bool = False
    prints_json: bool = False


def query(
    name: str, about: Any, look: Callable[[Options], watch_mode.Report], *arguments: Argument
) -> Subcommand:
    """Return a word that only shows something."""
    return Subcommand(name, str(about), look, arguments, is_query=True)


def action(
    name: str, about: Any, do: Callable[[Options], None], *arguments: Argument, json: bool = False
) -> Subcommand:
    """Return a word that changes something."""
    return Subcommand(name, str(about), do, arguments, prints_json=json)


def field_arguments(operation: Operation) -> list[Argument]:
    """Return an option for each field of an operation."""
    return [arg(one.option, one.help, dest=one.name, required=one.is_required) for one in operation.fields]


def page_arguments(most: int) -> list[Argument]:
    limit = _("so many on a page; default: %d") % most
    return [
        arg("--after", _("the next page: those after this name"), default="", metavar="NAME"),
        arg("--limit", limit, type=int, default=most, metavar="N"),
    ]


class CommandGroup(OperatorCommand):
    """A command with ``subcommands``. The first of them, a reading, is what it does without any."""

    def subcommands(self) -> Iterable[Subcommand]:
        raise NotImplementedError

    def add_arguments(self, parser: CommandParser) -> None:
        add(parser, watch_mode.watch_arguments())
        about = _("one of these; each has a --help of its own")
        parsers = parser.add_subparsers(dest="do", metavar="WHAT", title=_("what to do"), help=about)
        self._subcommands = {word.name: word for word in self.subcommands()}
        for word in self._subcommands.values():
            sub = parsers.add_parser(word.name, help=word.about, description=word.about)
            sub._negative_number_matcher = NEGATIVE  # argparse's own takes -1e300 for an option
            add(sub, word.arguments)
            if word.is_query:
                add(sub, watch_mode.watch_arguments(default=argparse.SUPPRESS))
            elif word.prints_json:
                add(sub, [flag("--json", _("print one JSON object"), default=argparse.SUPPRESS)])
        first = next(iter(self._subcommands))
        shown = parsers.choices[first]._actions
        defaults = {one.dest: one.default for one in shown if one.default is not argparse.SUPPRESS}
        parser.set_defaults(do=first, **defaults)

    def run(self, **options: Any) -> None:
        word = self._subcommands[options["do"]]
        if word.is_query:
            watch_mode.watch(self, lambda: word.do(options), options)
            return
        if options["watch"] is not None or (options["json"] and not word.prints_json):
            readings = ", ".join(one.name for one in self._subcommands.values() if one.is_query)
            raise CommandError(_("--watch and --json are for %s; nothing was changed") % readings)
        word.do(options)

    def operate(self, operation: Operation, rows: Any, count: int, answered: Options, also: str = "") -> None:
        """Do it to ``rows``, which are ``count`` many, and say so; see ``report_result``."""
        do = retrying(connections[rows.db], lambda: operation.do(rows, actor=actor(), **answered))
        self.report_result(operation, do, count, also)

    def report_result(self, operation: Operation, done: int, count: int, also: str = "") -> None:
        """Say that it was done to ``done`` of ``count``; raises CommandError unless that is all of them.

        Args:
            also: what else was wrong, in a sentence.
        """
        if done:
            self.stdout.write(operation.done_message % {"count": done})
        left = operation.skipped_message % {"count": count - done} if count > done else ""
        if left or also:
            raise CommandError(" ".join(filter(None, (left, also))))
