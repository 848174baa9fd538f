"""Reading the status of streams, dispensers, topics and channels by name: some, one, or a page."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

from django.db import connections, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Case, When

from resourcepool import options
from resourcepool.db.dialect import DbLater
from resourcepool.db.retry import retrying
from resourcepool.events import Sentence, joined, localized
from resourcepool.exceptions import BadOption
from resourcepool.status.badge import WORKING, Badge, Level
from resourcepool.taskqueue.abstract import existing_names
from resourcepool.taskqueue.models import MAX_KEY
from resourcepool.translation import gettext_lazy, gettext_noop as _

MAX_ROWS = 200  # on a page
RECENT = 60.0  # seconds


_STOPPED = Badge(Level.BAD, "stopped", gettext_lazy("not working"))


class ReasonsMixin:
    """A status that explains why nothing happens."""

    __slots__ = ()

    ALSO: ClassVar[tuple[str, ...]] = ("status", "explanation")

    @property
    def badge(self) -> Badge:
        """Its status, for every surface."""
        return _STOPPED if self.explanation else WORKING

    @property
    def status(self) -> str:
        """Its status, as a code."""
        return self.badge.code

    @property
    def explanation(self) -> str:
        """Why nothing happens: all reasons in one sentence; "" while work is done or there is none."""
        return localized(joined([*self.reasons()]))

    def reasons(self) -> Iterator[str]:
        raise NotImplementedError

    def redacted(self) -> Self:
        """Return it without what users read only with permission to view the ``details`` of its system."""
        return self


class Page(NamedTuple):
    """Statuses by name; ``after``: the argument for the next page, "" at the end."""

    statuses: list[Any]
    after: str


@dataclass(eq=False)
class StatusReader:
    """Reads the status of the rows of ``model``, in a fixed number of statements.

    All methods raise DatabaseUnavailable if the database cannot be read.

    Attributes:
        annotate: adds the annotations that ``read`` needs to a queryset.
        read: returns the statuses of rows, given the connection and the rows.
        filters: the filters by status, by name.
        word: the users' word for such a row; "": the name of the model.
    """

    model: Any
    annotate: Callable[[Any], Any]
    read: Callable[[BaseDatabaseWrapper, list[Any]], list[Any]]
    filters: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    word: str = ""

    def __post_init__(self) -> None:
        self.word = self.word or str(self.model._meta.model_name)

    @property
    def rows(self) -> Any:
        """All rows, on the database to which they are written: a replica may not have them yet."""
        return self.model.objects.using(router.db_for_write(self.model))

    def named(self, *names: str) -> list[Any]:
        """Return the status of each of these, by name, ``MAX_ROWS`` at most; without names, of the first ``MAX_ROWS``.

        Raises:
            BadOption: a name does not exist.
        """
        statuses = self._read(lambda rows: rows.filter(pk__in=names) if names else rows, MAX_ROWS).statuses
        if missing := sorted(set(names) - {one.name for one in statuses}):
            raise BadOption(self.word, missing[0], existing_names(self.model, self.rows.db))
        return statuses

    def get(self, name: str) -> Any:
        """Return the status of the row of this name; None: it does not exist."""
        if not name.isprintable():  # not a valid name; some databases refuse such text
            return None
        return next(iter(self._read(lambda rows: rows.filter(pk=name), 1).statuses), None)

    def page(
        self, after: str = "", *, limit: int | None = None, status: str = "", containing: str = ""
    ) -> Page:
        """Return the statuses of rows whose names come after ``after``.

        Args:
            limit: 1 to ``MAX_ROWS``; None: ``MAX_ROWS``.
            status: one of ``filters``; "": all of them.
            containing: a part of the name.

        Raises:
            BadOption: a value is not allowed.
        """
        most = options.whole("limit", MAX_ROWS if limit is None else limit, least=1, most=MAX_ROWS)
        if status and status not in self.filters:
            raise BadOption("status", status, Sentence(_("one of %(names)s"), names=", ".join(self.filters)))
        lookups = {
            lookup: options.text(option, text, most=MAX_KEY)
            for option, text, lookup in (("after", after, "pk__gt"), ("containing", containing, "pk__contains"))
            if text
        }
        by_status = self.filters[status] if status else lambda rows: rows
        return self._read(lambda rows: by_status(rows).filter(**lookups), most)

    def _read(self, chosen: Callable[[Any], Any], limit: int) -> Page:
        rows = self.annotate(chosen(self.rows)).order_by("pk")
        connection = connections[rows.db]

        def page() -> Page:
            read = list(rows.all()[: limit + 1])
            statuses = self.read(connection, read[:limit]) if read else []
            return Page(statuses, statuses[-1].name if len(read) > limit else "")

        return retrying(connection, page)


def finished_states(work: Any) -> Any:
    """Return (state, whether it finished within the last minute: 0 or 1) of finished work, newest first."""
    recent = Case(When(finished_at__gt=DbLater(-RECENT), then=1), default=0)
    over = work.exclude(finished_at=None).order_by("-finished_at")
    return over.annotate(is_recent=recent).values_list("state", "is_recent")
