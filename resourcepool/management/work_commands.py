"""What the commands of streams, dispensers, topics and channels share: readings of these, and acts on their rows."""

import shlex
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, ClassVar

from django.core.management.base import CommandError
from django.db import connections, router
from django.utils.translation import gettext as _

from resourcepool.database.retry import retrying
from resourcepool.exceptions import BadOption
from resourcepool.management.arguments import Argument, arg, field_values, yes
from resourcepool.management.layout import one_line
from resourcepool.management.subcommands import (
    CommandGroup,
    Options,
    Subcommand,
    action,
    field_arguments,
    page_arguments,
    query,
)
from resourcepool.management.watch_mode import Report
from resourcepool.management.work_report import next_page_hint, statuses_as_text, work_as_text
from resourcepool.operations import Operation
from resourcepool.operations.taskqueue import PAUSE, RESUME
from resourcepool.status.work.pages import MAX_LISTED, page_of_work
from resourcepool.status.work.status_reader import MAX_ROWS, StatusReader
from resourcepool.taskqueue.abstract import MAX_NAMES, existing_names

MOST_KEYS = 10_000
PAGING = ("status", "containing", "after")
UNNAMED = ("running", "assigned", "done")  # states in which nothing can be done to work


class NamedRowsCommand(CommandGroup):
    """A command about the rows of a model that are known by name."""

    reader: ClassVar[StatusReader]
    show_help: ClassVar[Any]  # what --help says of "show"

    @property
    def rows(self) -> Any:
        """All rows, on the database for writes."""
        model = self.reader.model
        return model.objects.using(router.db_for_write(model))

    def subcommands(self) -> Iterator[Subcommand]:
        look = [arg(self.reader.word, _("only this one"), nargs="?")]
        if self.reader.filters:
            so = _("only those that stand so")
            look.append(arg("--status", so, default="", choices=self.reader.filters))
        look.append(arg("--containing", _("only those with this in their name"), default="", metavar="TEXT"))
        yield query("show", self.show_help, self.look, *look, *page_arguments(MAX_ROWS))

    @property
    def name(self) -> Argument:
        """The name of one of them."""
        return arg(self.reader.word, _("its name"))

    def look(self, options: Options) -> Report:
        """Return how the one that is named stands, or a page of them."""
        word = self.reader.word
        if name := options[word]:
            found = self.reader.named(name)
            return {f"{word}s": found}, statuses_as_text(self.reader.model, found)
        chosen = {option: options[option] for option in PAGING if options.get(option)}
        found, after = self.reader.page(**chosen, limit=options["limit"])
        are_some = found or not chosen
        parts = statuses_as_text(self.reader.model, found) if are_some else [_("There are none.")]
        return {f"{word}s": found, "after": after}, [*parts, *next_page_hint("show", after)]

    def known(self, options: Options) -> Any:
        """Return the row of the one that is named; raises BadOption."""
        word, rows = self.reader.word, self.rows
        found = retrying(connections[rows.db], rows.filter(pk=options[word]).first)
        if found is None:
            raise BadOption(word, options[word], existing_names(rows.model, rows.db))
        return found


class WorkCommand(NamedRowsCommand):
    """A command about the rows of a model, and about the tasks or timers that belong to one of them."""

    work: ClassVar[Any]
    work_operations: ClassVar[Iterable[Operation]]
    list_word: ClassVar[tuple[str, Any]]  # the word that lists the work, and what --help says of it

    def subcommands(self) -> Iterator[Subcommand]:
        yield from super().subcommands()
        state = arg("--state", _("only those in this state"), default="", choices=self.work.State.values)
        yield query(*self.list_word, self.list_work, self.name, state, *page_arguments(MAX_LISTED))
        for one in (PAUSE, RESUME):
            yield action(one.name, one.title, partial(self.switch, one), self.name)
        states = [state for state in self.work.State.values if state not in UNNAMED]
        which = [
            arg("key", _("which ones it is done to"), nargs="*", metavar=self.work.named_by[1].upper()),
            arg("--state", _("all in this state, up to 10,000"), choices=states),
            yes(),
        ]
        for one in self.work_operations:
            yield action(
                one.name,
                one.title,
                partial(self.operate_on_work, one),
                self.name,
                *which,
                *field_arguments(one),
            )

    def list_work(self, options: Options) -> Report:
        asked = {name: options[name] for name in ("state", "after", "limit")}
        name, word = options[self.reader.word], self.list_word[0]
        found = page_of_work(self.work, name, **asked)
        words = f"{word} {shlex.quote(one_line(name, None))}"
        return {word: found.work, "after": found.after}, work_as_text(self.work, found, words)

    def switch(self, operation: Operation, options: Options) -> None:
        self.operate(operation, self.rows.filter(pk=self.known(options).pk), 1, {})

    def operate_on_work(self, operation: Operation, options: Options) -> None:
        """Do it to tasks or timers; raises CommandError, BadOption."""
        name, (column, called) = self.known(options).pk, self.work.named_by
        work = self.work.objects.using(self.rows.db).filter(**{column: name})
        answered = field_values(operation, options)
        keys = (
            set(options["key"])
            if options["state"] is None
            else self._of_a_state(work, operation, name, options)
        )
        if not 0 < len(keys) <= MOST_KEYS:
            raise BadOption(called, len(keys), _("1 to %s, or --state") % f"{MOST_KEYS:,}")
        self.operate_on_named(operation, work, called, keys, answered, name)

    def operate_on_named(
        self, operation: Operation, rows: Any, called: str, names: set[str], answered: Options, place: str
    ) -> None:
        """Do it to those of ``rows`` whose column ``called`` is one of ``names``; say which are not in ``place``."""
        found = _column(rows.filter(**{f"{called}__in": names}), called)
        also, missing = "", sorted(names - found)
        if missing:
            some = ", ".join(missing[:MAX_NAMES]) + (" .." if len(missing) > MAX_NAMES else "")
            also = _("Not in %(name)s: %(keys)s") % {"name": place, "keys": some}
        self.operate(operation, rows.filter(**{f"{called}__in": found}), len(found), answered, also)

    def _of_a_state(self, work: Any, operation: Operation, name: str, options: Options) -> set[str]:
        """Return the keys of the first work in a state, if the operator confirms."""
        called = self.work.named_by[1]
        if options["key"]:
            raise BadOption(called, options["key"], because=_("these or --state, not both"))
        keys = _column(work.filter(state=options["state"]).in_order()[:MOST_KEYS], called)
        if not keys:
            raise CommandError(_("nothing in %(name)s is in that state") % {"name": name})
        told = {"act": operation.button, "count": f"{len(keys):,}"}
        self.confirm(_("%(act)s all %(count)s?") % told, yes=options["yes"])
        return keys


def _column(rows: Any, name: str) -> set[str]:
    return set(retrying(connections[rows.db], lambda: list(rows.values_list(name, flat=True))))
