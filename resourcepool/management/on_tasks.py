"""What the commands of streams, dispensers and topics share: acts on one of these, and on its tasks or timers."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from django.core.management.base import CommandError, CommandParser
from django.db import connections, router
from django.utils.translation import gettext as _

from resourcepool.database.retry import retrying
from resourcepool.exceptions import BadOption
from resourcepool.management import watching
from resourcepool.management.arguments import entered
from resourcepool.management.base import OperatorCommand, actor
from resourcepool.management.work_report import places_as_text, there_are_more, work_as_text
from resourcepool.operations.operation import Operation, by_name
from resourcepool.operations.work import PAUSE, RESUME
from resourcepool.status.work.listed import MOST_LISTED, page_of_work
from resourcepool.status.work.places import MOST, Places
from resourcepool.taskqueue.abstract import NAMED, names_of

MOST_KEYS = 10_000
PAGING = ("standing", "containing", "after", "limit")
SWITCHES = by_name(PAUSE, RESUME)


class TasksCommand(OperatorCommand):
    """A command about the rows of ``place``, and about those of ``work`` that belong to one of them."""

    place: ClassVar[Any]
    work: ClassVar[Any]
    states: ClassVar[Sequence[str]]  # by which work may be named
    on_work: ClassVar[dict[str, Operation]]
    places: ClassVar[Places]  # how those of ``place`` are read
    lists: ClassVar[str]  # the word that lists the work
    helps: ClassVar[dict[str, Any]]  # what --help says of "show", and of ``lists``

    def add_arguments(self, parser: CommandParser) -> None:
        """See ``BaseCommand``."""
        acts = watching.add_acts(parser)
        show, listing = (acts.add_parser(does, help=str(self.helps[does])) for does in ("show", self.lists))
        show.add_argument(self.place._meta.model_name, nargs="?", help=_("only this one"))
        show.add_argument("--standing", choices=self.places.standings, help=_("only those that stand so"))
        about = _("only those with this in their name")
        show.add_argument("--containing", default="", metavar="TEXT", help=about)
        _add_page(show, MOST)
        listing.add_argument(self.place._meta.model_name, help=_("its name"))
        listing.add_argument(
            "--state", default="", choices=self.work.State.values, help=_("only those in this state")
        )
        _add_page(listing, MOST_LISTED)
        for one in (show, listing):
            watching.add_watch(one, default=argparse.SUPPRESS)
        self.add_acts(acts)
        self.add_operations(acts)

    def add_acts(self, acts: Any) -> None:
        """Add what can be done besides operations."""

    def run(self, **options: Any) -> None:
        """See ``OperatorCommand``."""
        does = options["do"] or "show"
        looks = {"show": self.look, self.lists: self.list_work}
        if does in looks:
            watching.watch(self, lambda: looks[does](options), options)
        elif options["json"] or options["watch"] is not None:
            told = _("--watch and --json are for show and %s; nothing was changed")
            raise CommandError(told % self.lists)
        else:
            self.do(does, options)

    def look(self, options: dict[str, Any]) -> watching.Look:
        """Return how the one that is named stands, or a page of them."""
        name = self.place._meta.model_name
        if options.get(name):
            found = self.places.named(options[name])
            return {f"{name}s": found}, places_as_text(self.place, found)
        chosen = {option: options[option] for option in PAGING if options.get(option) not in (None, "")}
        page = self.places.page(**chosen)
        are_some = page.found or not chosen.keys() - {"limit"}
        parts = places_as_text(self.place, page.found) if are_some else [_("There are none.")]
        return {f"{name}s": page.found, "after": page.after}, [*parts, *there_are_more(page.after)]

    def list_work(self, options: dict[str, Any]) -> watching.Look:
        """Return a page of tasks or timers."""
        chosen = {name: options[name] for name in ("state", "after", "limit")}
        page = page_of_work(self.work, options[self.place._meta.model_name], **chosen)
        return {self.lists: page.work, "after": page.after}, work_as_text(self.work, page)

    def do(self, does: str, options: dict[str, Any]) -> None:
        """Do what the options name; raises CommandError, BadOption."""
        self.do_operation(does, options)

    @property
    def using(self) -> str:
        """The alias of their database."""
        return router.db_for_write(self.place)

    def add_operations(self, acts: Any) -> None:
        """Add an act for each operation, with what names the work and what the operation asks."""
        for one in (*SWITCHES.values(), *self.on_work.values()):
            act = acts.add_parser(one.name, help=str(one.title))
            act.add_argument(self.place._meta.model_name, help=_("its name"))
            if one.name in SWITCHES:
                continue
            act.add_argument(
                "key", nargs="*", metavar=self.work.named_by[1].upper(), help=_("which ones it is done to")
            )
            act.add_argument("--state", choices=self.states, help=_("all in this state, up to 10,000"))
            act.add_argument("--yes", action="store_true", help=_("do not ask"))
            for line in one.fields:
                act.add_argument(f"--{line.name}", required=line.is_needed, help=str(line.help))

    def known(self, name: Any) -> Any:
        """Return the stream, dispenser or topic of this name; raises BadOption."""
        found = retrying(connections[self.using], self.place.objects.using(self.using).filter(pk=name).first)
        if found is None:
            raise BadOption(self.place._meta.model_name, name, names_of(self.place, self.using))
        return found

    def do_operation(self, does: str, options: dict[str, Any]) -> None:
        """Do what the options name; raises CommandError, BadOption."""
        name = self.known(options[self.place._meta.model_name]).name
        if does in SWITCHES:
            self.operate(SWITCHES[does], self.place.objects.using(self.using).filter(pk=name), 1, {})
            return
        operation, (column, called) = self.on_work[does], self.work.named_by
        work = self.work.objects.using(self.using).filter(**{column: name})
        asked = entered(operation, options)
        keys = set(options["key"])
        if options["state"] is not None:
            keys = self._of_a_state(work, operation, name, options)
        if not 0 < len(keys) <= MOST_KEYS:
            raise BadOption(called, len(keys), _("1 to %s, or --state") % f"{MOST_KEYS:,}")
        found = self._keys(work.filter(**{f"{called}__in": keys}))
        told = self.unknown(name, keys - found)
        self.operate(operation, work.filter(**{f"{called}__in": found}), len(found), asked, told)

    def operate(
        self, operation: Operation, rows: Any, count: int, asked: dict[str, Any], told: str = ""
    ) -> None:
        """Do it to ``rows``, which are ``count`` many; raises CommandError unless it changed all of them.

        Args:
            told: what else was wrong, in a sentence.
        """
        done = retrying(connections[rows.db], lambda: operation.do(rows, actor=actor(), **asked))
        if done:
            self.stdout.write(operation.done % {"count": done})
        left = operation.otherwise % {"count": count - done} if count > done else ""
        if left or told:
            raise CommandError(" ".join(filter(None, (left, told))))

    def unknown(self, name: str, keys: set[str]) -> str:
        """Return what to say of names that were given but do not exist; "": there are none."""
        if not keys:
            return ""
        some = ", ".join(sorted(keys)[:NAMED]) + (" .." if len(keys) > NAMED else "")
        return _("Not in %(name)s: %(keys)s") % {"name": name, "keys": some}

    def _of_a_state(self, work: Any, operation: Operation, name: str, options: dict[str, Any]) -> set[str]:
        """Return the keys of the work in a state, the first in order, if the operator confirms it."""
        if options["key"]:
            raise BadOption(self.work.named_by[1], options["key"], because=_("these or --state, not both"))
        keys = self._keys(work.filter(state=options["state"]).in_order()[:MOST_KEYS])
        if not keys:
            raise CommandError(_("nothing in %(name)s is in that state") % {"name": name})
        told = {"act": operation.button, "count": f"{len(keys):,}"}
        self.ask(_("%(act)s all %(count)s?") % told, yes=options["yes"])
        return keys

    def _keys(self, work: Any) -> set[str]:
        rows: Iterable[str] = work.values_list(self.work.named_by[1], flat=True)
        return set(retrying(connections[work.db], lambda: list(rows)))


def _add_page(parser: CommandParser, most: int) -> None:
    """Add ``--after`` and ``--limit``."""
    about = _("the next page: those after this name")
    parser.add_argument("--after", default="", metavar="NAME", help=about)
    about = _("so many on a page; default: %d") % most
    parser.add_argument("--limit", type=int, default=most, metavar="N", help=about)
