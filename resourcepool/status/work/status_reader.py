"""How streams, dispensers, topics and channels are found by name: some, one, or a page. Each says how it is read."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from django.db import connections, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Case, When
from django.utils.translation import gettext_noop as _

from resourcepool import options
from resourcepool.database.retry import retrying
from resourcepool.dialect import DbLater
from resourcepool.events import Sentence, joined, localized
from resourcepool.exceptions import BadOption
from resourcepool.taskqueue.abstract import existing_names
from resourcepool.taskqueue.models import MAX_KEY

MAX_ROWS = 200  # on a page, and of all
RECENT = 60.0  # seconds


class ReasonsMixin:
    """A reading that tells why nothing happens."""

    __slots__ = ()

    ALSO: ClassVar[tuple[str, ...]] = ("explanation",)

    @property
    def explanation(self) -> str:
        """Why nothing happens, all reasons in one sentence; "": something does, or there is nothing to do."""
        return localized(joined([*self.reasons()]))

    def reasons(self) -> Iterator[str]:
        """Yield each reason."""
        raise NotImplementedError


class Page(NamedTuple):
    """Some of them, by name; ``after``: what to ask for the next page with, "" at the end."""

    statuses: list[Any]
    after: str


@dataclass(eq=False)
class StatusReader:
    """How the rows of ``model`` stand, in a few statements, however many there are.

    All methods raise DatabaseUnavailable when they cannot be read.

    Attributes:
        annotated: adds to a queryset what ``read`` needs.
        read: returns how these rows stand, given the connection and the rows.
        standings: how they may stand: what is asked for, and the filter.
        word: what users call one of them; "": as the model is called.
    """

    model: Any
    annotate: Callable[[Any], Any]
    read: Callable[[BaseDatabaseWrapper, list[Any]], list[Any]]
    filters: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    word: str = ""

    def __post_init__(self) -> None:
        self.word = self.word or str(self.model._meta.model_name)

    def named(self, *names: str) -> list[Any]:
        """Return how each of these stands, by name, no more than ``MAX_ROWS``; without names, the first ``MAX_ROWS`` of all.

        Raises:
            BadOption: there is none of such a name.
        """
        statuses = self._read(lambda rows: rows.filter(pk__in=names) if names else rows, MAX_ROWS).statuses
        if missing := sorted(set(names) - {one.name for one in statuses}):
            using = self._connection().alias
            raise BadOption(self.word, missing[0], existing_names(self.model, using))
        return statuses

    def get(self, name: str) -> Any:
        """Return how the one of this name stands; None: there is none."""
        if not name.isprintable():  # none has such a name, and no database can be asked for each
            return None
        return next(iter(self._read(lambda rows: rows.filter(pk=name), 1).statuses), None)

    def page(
        self, after: str = "", *, limit: int | None = None, status: str = "", containing: str = ""
    ) -> Page:
        """Return how those stand whose names come after ``after``.

        Args:
            limit: 1 to ``MAX_ROWS``; None: ``MAX_ROWS``.
            standing: one of ``filters``; "": all of them.
            containing: a part of their names.

        Raises:
            BadOption: a value is not allowed.
        """
        most = options.whole("limit", MAX_ROWS if limit is None else limit, least=1, most=MAX_ROWS)
        if status and status not in self.filters:
            raise BadOption("status", status, Sentence(_("one of %(names)s"), names=", ".join(self.filters)))
        wanted = {
            lookup: options.text(option, text, most=MAX_KEY)
            for option, text, lookup in (("after", after, "pk__gt"), ("containing", containing, "pk__contains"))
            if text
        }
        standing_so = self.filters[status] if status else lambda rows: rows
        return self._read(lambda rows: standing_so(rows).filter(**wanted), most)

    def _connection(self) -> BaseDatabaseWrapper:
        return connections[router.db_for_write(self.model)]  # a replica may not have it yet

    def _read(self, chosen: Callable[[Any], Any], limit: int) -> Page:
        connection = self._connection()
        rows = self.annotate(chosen(self.model.objects.using(connection.alias))).order_by("pk")

        def page() -> Page:
            read = list(rows.all()[: limit + 1])
            statuses = self.read(connection, read[:limit]) if read else []
            return Page(statuses, statuses[-1].name if len(read) > limit else "")

        return retrying(connection, page)


def finished_states(work: Any) -> Any:
    """Return (state, whether it was within the last minute: 0 or 1) of what is over, the last first."""
    recent = Case(When(finished_at__gt=DbLater(-RECENT), then=1), default=0)
    over = work.exclude(finished_at=None).order_by("-finished_at")
    return over.annotate(is_recent=recent).values_list("state", "is_recent")
