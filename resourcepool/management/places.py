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
from resourcepool.management.arguments import Argument, arg, entered, yes
from resourcepool.management.layout import plain
from resourcepool.management.watching import Look
from resourcepool.management.words import Options, Word, WordsCommand, act, answers, page, reading
from resourcepool.management.work_report import places_as_text, there_are_more, work_as_text
from resourcepool.operations import Operation
from resourcepool.operations.work import PAUSE, RESUME
from resourcepool.status.work.listed import MOST_LISTED, page_of_work
from resourcepool.status.work.places import MOST, Places
from resourcepool.taskqueue.abstract import NAMED, names_of

MOST_KEYS = 10_000
PAGING = ("standing", "containing", "after")
UNNAMED = ("running", "assigned", "done")  # states in which nothing can be done to work


class PlacesCommand(WordsCommand):
    """A command about the rows of a model that are known by name."""

    places: ClassVar[Places]
    shows: ClassVar[Any]  # what --help says of "show"

    @property
    def rows(self) -> Any:
        """All rows, on the database for writes."""
        model = self.places.model
        return model.objects.using(router.db_for_write(model))

    def words(self) -> Iterator[Word]:
        look = [arg(self.places.word, _("only this one"), nargs="?")]
        if self.places.standings:
            so = _("only those that stand so")
            look.append(arg("--standing", so, default="", choices=self.places.standings))
        look.append(arg("--containing", _("only those with this in their name"), default="", metavar="TEXT"))
        yield reading("show", self.shows, self.look, *look, *page(MOST))

    @property
    def name(self) -> Argument:
        """The name of one of them."""
        return arg(self.places.word, _("its name"))

    def look(self, options: Options) -> Look:
        """Return how the one that is named stands, or a page of them."""
        word = self.places.word
        if name := options[word]:
            found = self.places.named(name)
            return {f"{word}s": found}, places_as_text(self.places.model, found)
        chosen = {option: options[option] for option in PAGING if options.get(option)}
        found, after = self.places.page(**chosen, limit=options["limit"])
        are_some = found or not chosen
        parts = places_as_text(self.places.model, found) if are_some else [_("There are none.")]
        return {f"{word}s": found, "after": after}, [*parts, *there_are_more("show", after)]

    def known(self, options: Options) -> Any:
        """Return the row of the one that is named; raises BadOption."""
        word, rows = self.places.word, self.rows
        found = retrying(connections[rows.db], rows.filter(pk=options[word]).first)
        if found is None:
            raise BadOption(word, options[word], names_of(rows.model, rows.db))
        return found


class TasksCommand(PlacesCommand):
    """A command about the rows of a model, and about the tasks or timers that belong to one of them."""

    work: ClassVar[Any]
    on_work: ClassVar[Iterable[Operation]]
    lists: ClassVar[tuple[str, Any]]  # the word that lists the work, and what --help says of it

    def words(self) -> Iterator[Word]:
        yield from super().words()
        state = arg("--state", _("only those in this state"), default="", choices=self.work.State.values)
        yield reading(*self.lists, self.list_work, self.name, state, *page(MOST_LISTED))
        for one in (PAUSE, RESUME):
            yield act(one.name, one.title, partial(self.switch, one), self.name)
        states = [state for state in self.work.State.values if state not in UNNAMED]
        which = [
            arg("key", _("which ones it is done to"), nargs="*", metavar=self.work.named_by[1].upper()),
            arg("--state", _("all in this state, up to 10,000"), choices=states),
            yes(),
        ]
        for one in self.on_work:
            yield act(one.name, one.title, partial(self.do_to_work, one), self.name, *which, *answers(one))

    def list_work(self, options: Options) -> Look:
        asked = {name: options[name] for name in ("state", "after", "limit")}
        name, word = options[self.places.word], self.lists[0]
        found = page_of_work(self.work, name, **asked)
        words = f"{word} {shlex.quote(plain(name, None))}"
        return {word: found.work, "after": found.after}, work_as_text(self.work, found, words)

    def switch(self, operation: Operation, options: Options) -> None:
        self.operate(operation, self.rows.filter(pk=self.known(options).pk), 1, {})

    def do_to_work(self, operation: Operation, options: Options) -> None:
        """Do it to tasks or timers; raises CommandError, BadOption."""
        name, (column, called) = self.known(options).pk, self.work.named_by
        work = self.work.objects.using(self.rows.db).filter(**{column: name})
        answered = entered(operation, options)
        keys = (
            set(options["key"])
            if options["state"] is None
            else self._of_a_state(work, operation, name, options)
        )
        if not 0 < len(keys) <= MOST_KEYS:
            raise BadOption(called, len(keys), _("1 to %s, or --state") % f"{MOST_KEYS:,}")
        self.do_to_named(operation, work, called, keys, answered, name)

    def do_to_named(
        self, operation: Operation, rows: Any, called: str, names: set[str], answered: Options, place: str
    ) -> None:
        """Do it to those of ``rows`` whose column ``called`` is one of ``names``; say which are not in ``place``."""
        found = _column(rows.filter(**{f"{called}__in": names}), called)
        also, missing = "", sorted(names - found)
        if missing:
            some = ", ".join(missing[:NAMED]) + (" .." if len(missing) > NAMED else "")
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
        self.ask(_("%(act)s all %(count)s?") % told, yes=options["yes"])
        return keys


def _column(rows: Any, name: str) -> set[str]:
    return set(retrying(connections[rows.db], lambda: list(rows.values_list(name, flat=True))))
