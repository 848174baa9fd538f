"""What all surfaces need to know about a system, declared once beside its status: figures, lists, alarms.

The surfaces (commands, REST, metrics, dashboard, admin) loop over ``registry.systems()``.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

from django.utils.formats import number_format

from resourcepool.status.alarm import Alarm, AlarmKind, Thresholds
from resourcepool.status.status_reader import StatusReader
from resourcepool.status.times import duration
from resourcepool.translation import gettext, gettext_lazy as _

SEPARATOR = ", "
RESOURCES = _("Resources")
WORK = _("Work")
QUEUES = _("Queues")
LOCKS = _("Locks and channels")
INTERNALS = _("Internals")

SECTIONS = (RESOURCES, WORK, QUEUES, LOCKS, INTERNALS)


class Unit(Enum):
    """How a figure is written; None is written as "-", or not at all."""

    TEXT = "text"
    COUNT = "count"  # "12,345"
    COUNTS = "counts"  # several counts in one column
    NUMBER = "number"  # "12345"
    SECONDS = "seconds"  # "12 min"
    AGO = "ago"  # seconds, as "12 min ago"
    DUE = "due"  # seconds until then, as "in 12 min" or "due for 12 min"
    SENTENCE = "sentence"  # as it is stored, shown in the user's language


class RowList(NamedTuple):
    """A list of rows that belong to a system, such as the unfinished tasks of a stream.

    Attributes:
        name: part of the HTML id of a link to it.
        filters: of its page, besides the one by the system's ``word``; None: not even that one.
    """

    name: str
    model: Any
    filters: Mapping[str, str] | None

    def filters_of(self, word: str, name: str) -> dict[str, str]:
        """Return the filters for the rows of ``name``; ``word``: of the system."""
        return {} if self.filters is None else {word: name, **self.filters}


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a status.

    Attributes:
        unit: how it is written.
        label: heading in commands, lazily translated; "": commands do not show it.
        value: its attribute of the status, or a function that returns it; None: no value now.
        rows: the list that the dashboard links the (first) number to.
        gauge: (name, help) of its gauge for Prometheus; None: it has none.
        heading: heading on the dashboard; None: the label; "": the dashboard does not show it.
        widest: maximum width in characters in a command's table.
    """

    unit: Unit
    label: Any
    value: str | Callable[[Any], Any]
    rows: RowList | None = None
    gauge: tuple[str, str] | None = None
    heading: Any = None
    widest: int | None = None

    def of(self, status: Any) -> Any:
        return attrgetter(self.value)(status) if isinstance(self.value, str) else self.value(status)


_UNITS = (Unit.TEXT, Unit.COUNT, Unit.NUMBER, Unit.SECONDS, Unit.AGO)
text, count, whole, seconds, age = (partial(Figure, unit) for unit in _UNITS)


STATUS = text(_("status"), lambda one: str(one.badge.label))


def counts(value: Callable[[Any], Any], heading: Any, rows: RowList | None = None) -> Figure:
    """Return a figure of several counts that only the dashboard shows."""
    return Figure(Unit.COUNTS, "", value, rows, heading=heading)


def gauge(name: str, about: str, value: str | Callable[[Any], Any]) -> Figure:
    """Return a figure that only Prometheus gets; ``about``: its help."""
    return Figure(Unit.NUMBER, "", value, gauge=(name, about), heading="")


@dataclass(frozen=True, slots=True)
class Panel:
    """The panel of a system on the dashboard: a line for each row, with the figures that have a heading.

    Attributes:
        about: beside the title, in small print.
        order: panels are shown in ascending order.
    """

    title: Any
    about: Any
    order: int


@dataclass(eq=False, kw_only=True)
class System:
    """A system, such as the streams.

    Attributes:
        name: its plural: path in REST, key in JSON ("streams").
        word: the users' word for one row: option, label of gauges ("stream").
        viewed: the models that a user must be allowed to view to see its figures.
        details: further models that one must be allowed to view to see each status in full, not ``redacted``.
        read: returns the statuses, for figures and alarms.
        figures: in the order of columns.
        alarms: returns the alarms of all statuses; None: there are none.
        subject: of its alarms, an ``ABOUT_`` text.
        alarm_lists: the list that an alarm of this kind links to; None: the other kinds.
        alarm_operations: the operations that most likely end an alarm of this kind, by name; on the row that the alarm
            is about, or on the list that it links to.
        section: of the index of the admin.
        panel: on the dashboard; None: none, or a special one (``dashboard.panels``).
    """

    name: str
    word: str
    viewed: tuple[Any, ...]
    read: Callable[[], Any]
    details: tuple[Any, ...] = ()
    figures: tuple[Figure, ...] = ()
    alarms: Callable[[Any, Thresholds], Iterable[Alarm]] | None = None
    subject: str = ""
    alarm_lists: Mapping[AlarmKind | None, RowList] = field(default_factory=dict)
    alarm_operations: Mapping[AlarmKind, tuple[str, ...]] = field(default_factory=dict)
    section: Any = INTERNALS
    panel: Panel | None = None

    @property
    def models(self) -> set[Any]:
        lists = [*self.alarm_lists.values(), *(figure.rows for figure in self.figures)]
        return {*self.viewed, *self.details, *(rows.model for rows in lists if rows)}

    @property
    def plural(self) -> str:
        """The users' word for all of its rows, in their language."""
        return str(self.viewed[0]._meta.verbose_name_plural)

    def list_of_alarm(self, kind: AlarmKind, name: str) -> tuple[Any, dict[str, str]]:
        """Return the model and the filters of the list that an alarm about ``name`` links to."""
        rows = self.alarm_lists.get(kind) or self.alarm_lists.get(None)
        return (rows.model, rows.filters_of(self.word, name)) if rows else (self.viewed[0], {})


@dataclass(eq=False, kw_only=True)
class NamedSystem(System):
    """A system with rows that are known by name: commands, REST and the dashboard list them in pages.

    Attributes:
        figures: the name first; the status is added after it.
        reader: reads their statuses.
        none_yet: what commands say while there is no row.
        operations: ``operations.Operation`` s on its rows, for its admin pages, ``resourcepool_operate`` and REST.
        parts: (attribute of a status with its parts, the figures of these): commands show them for a single row.
    """

    reader: StatusReader
    none_yet: str
    parts: tuple[str, tuple[Figure, ...]] | None = None
    operations: tuple[Any, ...] = ()
    name: str = field(init=False)
    word: str = field(init=False)
    viewed: tuple[Any, ...] = field(init=False)
    read: Callable[[], Any] = field(init=False)

    @property
    def title(self) -> str:
        """The users' word for one row, in their language."""
        return str(self.figures[0].label)

    @property
    def figures_of_pages(self) -> list[tuple[Any, Figure]]:
        """(heading, figure) of each figure that pages show."""
        headings = ((one.label if one.heading is None else one.heading, one) for one in self.figures)
        return [(heading, figure) for heading, figure in headings if heading]

    def __post_init__(self) -> None:
        self.word, self.read = self.reader.word, self.reader.named
        self.figures = (self.figures[0], STATUS, *self.figures[1:])
        self.name, self.viewed = f"{self.word}s", (self.reader.model,)


def number(count: float) -> str:
    """Format a whole number with thousands separators."""
    return number_format(count, 0, use_l10n=True, force_grouping=True)


WRITE: Mapping[Unit, Callable[[Any], object]] = {
    Unit.TEXT: lambda text: text or "-",
    Unit.SECONDS: lambda seconds: "" if seconds is None else duration(seconds),
    Unit.AGO: lambda seconds: "-" if seconds is None else gettext("%s ago") % duration(seconds),
    Unit.COUNT: number,
    Unit.COUNTS: lambda counts: SEPARATOR.join(map(number, counts)),
}


def figure_text(figure: Figure, status: Any) -> str:
    return str(WRITE.get(figure.unit, str)(figure.of(status)))
