"""Commands with subcommands: queries, which only show something, and actions, which change something."""

import argparse
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from django.core.management.base import CommandError, CommandParser

from resourcepool.management import watch_mode
from resourcepool.management.arguments import Argument, add, arg, flag
from resourcepool.management.base import OperatorCommand, actor
from resourcepool.management.layout import one_line
from resourcepool.operations import Operation
from resourcepool.translation import gettext as _

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


def query(
    name: str, about: Any, read: Callable[[Options], watch_mode.Report], *arguments: Argument
) -> Subcommand:
    """Return a subcommand that only shows something; it also has ``--watch`` and ``--json``."""
    return Subcommand(name, str(about), read, arguments, is_query=True)


def action(
    name: str, about: Any, do: Callable[[Options], None], *arguments: Argument, json: bool = False
) -> Subcommand:
    """Return a subcommand that changes something."""
    return Subcommand(name, str(about), do, arguments, prints_json=json)


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
        add(parser, watch_mode.watch_arguments())
        about = _("see each with --help")
        parsers = parser.add_subparsers(dest="do", metavar="SUBCOMMAND", title=_("subcommands"), help=about)
        self._subcommands = {subcommand.name: subcommand for subcommand in self.subcommands()}
        for subcommand in self._subcommands.values():
            sub = parsers.add_parser(subcommand.name, help=subcommand.about, description=subcommand.about)
            sub._negative_number_matcher = NEGATIVE  # argparse would take -1e300 for an option
            add(sub, subcommand.arguments)
            if subcommand.is_query:
                add(sub, watch_mode.watch_arguments(default=argparse.SUPPRESS))
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
            watch_mode.watch(self, lambda: subcommand.do(options), options)
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
