"""The bases of the commands of streams, dispensers, topics and channels: status, and actions on their rows."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

from django.core.management.base import CommandError
from django.db import connections, router

from resourcepool.db.retry import retrying
from resourcepool.exceptions import BadOption
from resourcepool.management.arguments import Argument, arg, field_values, yes
from resourcepool.management.layout import FittedTable, one_line
from resourcepool.management.subcommands import (
    CommandGroup,
    Options,
    Report,
    Subcommand,
    operates,
    page_arguments,
    query,
)
from resourcepool.operations import Operation
from resourcepool.operations.taskqueue import PAUSE, RESUME
from resourcepool.status.status_reader import MAX_ROWS
from resourcepool.status.system import NamedSystem
from resourcepool.status.work.pages import FIGURES, MAX_LISTED, WorkPage, page_of_work
from resourcepool.taskqueue.abstract import MAX_NAMES, existing_names
from resourcepool.text import natural_key
from resourcepool.translation import gettext as _

MAX_KEYS = 10_000
PAGING = ("status", "containing", "after")
NO_ACTION_STATES = ("running", "assigned", "done")


def show(system: NamedSystem, subcommand: str, about: Any) -> Subcommand:
    """Return a subcommand that shows the status of the rows of a system, or of one; ``about``: for --help."""
    arguments = [arg(system.word, _("name (default: all)"), nargs="?")]
    if system.reader.filters:
        status = arg("--status", _("only with this status"), default="", choices=system.reader.filters)
        arguments.append(status)
    arguments.append(arg("--containing", _("only names that contain this text"), default="", metavar="TEXT"))
    read = partial(_page, system, subcommand)
    return query(subcommand, about, read, *arguments, *page_arguments(MAX_ROWS))


def _page(system: NamedSystem, subcommand: str, options: Options) -> Report:
    """Return the status of the named row, or a page of statuses."""
    if name := options[system.word]:
        statuses = system.reader.named(name)
        return {system.name: statuses}, statuses_as_text(system, statuses)
    filters = {option: options[option] for option in PAGING if options.get(option)}
    statuses, after = system.reader.page(**filters, limit=options["limit"])
    is_shown = statuses or not filters
    parts = statuses_as_text(system, statuses) if is_shown else [_("There are none.")]
    return {system.name: statuses, "after": after}, [*parts, *next_page_hint(subcommand, after)]


class NamedRowsCommand(CommandGroup):
    """A command about rows that are known by name."""

    system: ClassVar[NamedSystem]
    show_help: ClassVar[Any]  # for --help

    @property
    def rows(self) -> Any:
        """All rows, on the writer database."""
        model = self.system.reader.model
        return model.objects.using(router.db_for_write(model))

    def subcommands(self) -> Iterator[Subcommand]:
        yield show(self.system, "show", self.show_help)

    @property
    def name(self) -> Argument:
        return arg(self.system.word, _("name"))

    def known(self, options: Options) -> Any:
        """Return the named row; raises BadOption."""
        word, rows = self.system.word, self.rows
        row = retrying(connections[rows.db], rows.filter(pk=options[word]).first)
        if row is None:
            raise BadOption(word, options[word], existing_names(rows.model, rows.db))
        return row


class WorkCommand(NamedRowsCommand):
    """A command about rows that are known by name, and about their tasks or timers."""

    work: ClassVar[Any]
    work_operations: ClassVar[Iterable[Operation]]
    list_word: ClassVar[tuple[str, Any]]  # the subcommand that lists the work, and its help

    def subcommands(self) -> Iterator[Subcommand]:
        yield from super().subcommands()
        state = arg("--state", _("only in this state"), default="", choices=self.work.State.values)
        yield query(*self.list_word, self.list_work, self.name, state, *page_arguments(MAX_LISTED))
        for one in (PAUSE, RESUME):
            yield operates(one, self.switch, self.name)
        states = [state for state in self.work.State.values if state not in NO_ACTION_STATES]
        which = [
            arg("key", _("keys to act on"), nargs="*", metavar=self.work.key_columns[1].upper()),
            arg("--state", _("all in this state, up to 10,000"), choices=states),
            yes(),
        ]
        for one in self.work_operations:
            yield operates(one, self.operate_on_work, self.name, *which)

    def list_work(self, options: Options) -> Report:
        """Return a page of the tasks or timers of the named row."""
        query = {name: options[name] for name in ("state", "after", "limit")}
        name, subcommand = options[self.system.word], self.list_word[0]
        work_page = page_of_work(self.work, name, **query)
        arguments = f"{subcommand} {shlex.quote(one_line(name, None))}"  # for the hint at the next page
        return {subcommand: work_page.work, "after": work_page.after}, work_as_text(
            self.work, work_page, arguments
        )

    def switch(self, operation: Operation, options: Options) -> None:
        row = self.known(options)
        self.operate(operation, self.rows.filter(pk=row.pk), [str(row)], {})

    def operate_on_work(self, operation: Operation, options: Options) -> None:
        """Run an operation on tasks or timers; raises CommandError, BadOption."""
        name, (column, called) = self.known(options).pk, self.work.key_columns
        work = self.work.objects.using(self.rows.db).filter(**{column: name})
        answered = field_values(operation, options)
        keys = (
            set(options["key"])
            if options["state"] is None
            else self._confirmed_keys_in_state(work, operation, name, options)
        )
        if not 0 < len(keys) <= MAX_KEYS:
            raise BadOption(called, len(keys), _("1 to %s, or --state") % f"{MAX_KEYS:,}")
        self.operate_on_named(operation, work, called, keys, answered, name)

    def operate_on_named(
        self, operation: Operation, rows: Any, called: str, names: set[str], answered: Options, place: str
    ) -> None:
        """Run an operation on rows whose column ``called`` is in ``names``; report names missing in ``place``."""
        existing = _column(rows.filter(**{f"{called}__in": names}), called)
        also, missing = "", sorted(names - existing)
        if missing:
            some = ", ".join(missing[:MAX_NAMES]) + (" .." if len(missing) > MAX_NAMES else "")
            also = _("Not in %(name)s: %(keys)s") % {"name": place, "keys": some}
        self.operate(operation, rows.filter(**{f"{called}__in": existing}), existing, answered, also=also)

    def _confirmed_keys_in_state(
        self, work: Any, operation: Operation, name: str, options: Options
    ) -> set[str]:
        """Return the keys, or names of timers, of all work in the state --state, up to ``MAX_KEYS``.

        Raises:
            BadOption: keys were given, too.
            CommandError: there are none, or the operator did not confirm.
        """
        called = self.work.key_columns[1]
        if options["key"]:
            raise BadOption(called, options["key"], because=_("give keys or --state, not both"))
        keys = _column(work.filter(state=options["state"]).in_order()[:MAX_KEYS], called)
        if not keys:
            raise CommandError(_("nothing in %(name)s has that state") % {"name": name})
        values = {"act": operation.button, "count": f"{len(keys):,}"}
        self.confirm(_("%(act)s all %(count)s?") % values, yes=options["yes"])
        return keys


def _column(rows: Any, name: str) -> set[str]:
    return set(retrying(connections[rows.db], lambda: list(rows.values_list(name, flat=True))))


def statuses_as_text(system: NamedSystem, statuses: Sequence[Any]) -> list[Any]:
    """Return a table of the rows of a system, and why nothing happens in them."""
    if not statuses:
        return [_(system.none_yet)]
    parts: list[Any] = [FittedTable(_sorted(statuses, "name"), system.figures)]
    if len(statuses) == 1 and system.parts and (rows := getattr(statuses[0], system.parts[0])):
        parts += ["", FittedTable(rows, system.parts[1])]
    reasons = [one_line(f"{one.name}: {one.explanation}", None) for one in statuses if one.explanation]
    return [*parts, *(["", *reasons] if reasons else [])]


def _sorted(rows: Sequence[Any], name: str) -> list[Any]:
    """Return the rows of a page, "req-2" before "req-10"; the database orders the pages by plain text."""
    return sorted(rows, key=lambda row: natural_key(getattr(row, name)))


def work_as_text(model: Any, page: WorkPage, words: str) -> list[Any]:
    """Return a table of tasks or timers; ``words``: the command's arguments that show this page."""
    rows = _sorted(page.work, model.key_columns[1])
    shown = FittedTable(rows, FIGURES[model]) if rows else _("There are none.")
    return [shown, *next_page_hint(words, page.after)]


def next_page_hint(words: str, after: str) -> Iterator[str]:
    """Yield the arguments for the next page, if there is one; ``words``: the arguments of this page."""
    if after:
        yield ""
        yield _("There are more: %s") % f"{words} --after {shlex.quote(one_line(after, None))}"
