"""The filters beside lists: a choice of values (``choice_filter``), a text field (``text_filter``), those of events."""

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from django.contrib import admin
from django.db import connections
from django.db.models import Max, Q
from django.utils.text import format_lazy

from resourcepool.admin.paging import NUL, parse_param
from resourcepool.db.dialect import in_columns
from resourcepool.elections.models import election_models
from resourcepool.resources.registry import resource_models
from resourcepool.signals import EventKind
from resourcepool.taskqueue.abstract import recorded_models
from resourcepool.translation import gettext, gettext_lazy as _

MAX_TEXT_SHOWN = 60  # characters of a refused value
NEWEST = 100_000  # events or moves that filters search, because no index supports every filter
MOMENTS = ("around", "from", "to")
WHOLE_NAME = _("whole name")
Narrow = Callable[[Any, str], Any]
Options = Iterable[tuple[str, Any]] | Callable[[], Iterable[tuple[str, Any]]]


class ChoiceFilter(admin.SimpleListFilter):
    """A line of links; with counts, those of no row are left out."""

    template = "resourcepool/admin/choice_filter.html"
    options: Options
    narrow: Narrow

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return list(self.options() if callable(self.options) else self.options)

    def choices(self, changelist: Any) -> Iterator[Any]:
        for choice in super().choices(changelist):
            if choice["selected"] or not str(choice["display"]).endswith(" (0)"):
                yield choice

    def queryset(self, request: Any, queryset: Any) -> Any:
        value = self.value()
        return self.narrow(queryset, value) if value else queryset


class TextFilter(admin.SimpleListFilter):
    """A filter with a text field; it works without JavaScript."""

    template = "resourcepool/admin/text_filter.html"
    hint: Any = ""
    narrow: Narrow

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return []

    def has_output(self) -> bool:
        return True

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Yield the context of the form: its text, and the other parameters of the page."""
        other_params = [pair for pair in changelist.params.items() if pair[0] != self.parameter_name]
        yield {
            "name": self.parameter_name,
            "value": self.value() or "",
            "hint": self.hint,
            "others": other_params,
            "without": changelist.get_query_string(remove=[self.parameter_name]),
        }

    def queryset(self, request: Any, queryset: Any) -> Any:
        text = (self.value() or "").strip()
        if not text:
            return queryset
        return queryset.none() if NUL in text else self.narrow(queryset, text)


def choice_filter(name: str, title: Any, options: Options, narrow: Narrow | None = None) -> type[ChoiceFilter]:
    """Return a filter with values to choose from.

    Args:
        name: the URL parameter.
        title: the heading.
        options: pairs (value, label), or a function that returns them.
        narrow: returns the rows that match a value; None: rows with this value in the column ``name``.
    """
    static_options: Any = staticmethod(options) if callable(options) else options
    attrs = {"parameter_name": name, "title": title, "options": static_options}
    return type(f"{name}_filter", (ChoiceFilter,), attrs | {"narrow": staticmethod(narrow or _by_value(name))})


def text_filter(
    name: str, title: Any, hint: Any = WHOLE_NAME, narrow: Narrow | None = None
) -> type[TextFilter]:
    """Return a filter with a text field, ``hint`` as its placeholder; see ``choice_filter``."""
    attrs = {"parameter_name": name, "title": title, "hint": hint}
    return type(f"{name}_filter", (TextFilter,), attrs | {"narrow": staticmethod(narrow or _by_value(name))})


def _by_value(name: str) -> Narrow:
    return lambda rows, value: rows.filter(**{name: value})


AROUND = datetime.timedelta(minutes=5)  # before and after
PAST = {
    "hour": (3_600, _("past hour")),
    "day": (86_400, _("past 24 hours")),
    "week": (7 * 86_400, _("past 7 days")),
}


def models_with_events() -> list[Any]:
    return [*resource_models(), *election_models(), *recorded_models()]


def is_dated(params: Mapping[str, Any]) -> bool:
    """Return whether these parameters of a list choose events by a date and time."""
    return any(params.get(name) for name in MOMENTS)


def in_period(events: Any, chosen: Mapping[str, Any]) -> Any:
    """Return the events of a period.

    Args:
        chosen: "past": a key of ``PAST``; "around": five minutes before and after a moment; "from", "to".
    """
    moments = {name: parse_param(text) for name in MOMENTS if (text := chosen.get(name))}
    if None in moments.values():
        return events.none()
    if chosen.get("past") in PAST:
        events = events.since(PAST[chosen["past"]][0])
    if around := moments.pop("around", None):
        moments = {"from": around - AROUND, "to": around + AROUND}
    connection = connections[events.db]
    for name, lookup in (("from", "at__gte"), ("to", "at__lte")):
        if moment := moments.get(name):
            events = events.filter(**{lookup: in_columns(moment, connection)})
    return events


class PeriodFilter(admin.ListFilter):
    """A choice of recent periods, and fields for any other; it works without JavaScript."""

    title = _("when")
    template = "resourcepool/admin/period_filter.html"

    def __init__(self, request: Any, params: dict[str, Any], model: Any, model_admin: Any) -> None:
        super().__init__(request, params, model, model_admin)
        for name in self.expected_parameters():
            if values := params.pop(name, None):
                self.used_parameters[name] = values[-1]

    def expected_parameters(self) -> list[Any]:
        return ["past", *MOMENTS]

    def has_output(self) -> bool:
        return True

    def queryset(self, request: Any, queryset: Any) -> Any:
        return in_period(queryset, self.used_parameters)

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Yield the context of the links and of the form."""
        names = self.expected_parameters()
        past = self.used_parameters.get("past", "")
        options = [("", _("All")), *((name, label) for name, (_seconds, label) in PAST.items())]
        yield {
            "options": [
                (label, changelist.get_query_string({"past": name} if name else {}, names), name == past)
                for name, label in options
            ],
            "others": [pair for pair in changelist.params.items() if pair[0] not in names],
            "fields": [
                (name, label, self.used_parameters.get(name, ""))
                for name, label in zip(MOMENTS, (_("Around"), _("From"), _("To")), strict=True)
            ],
            "errors": self._errors(),
            "is_dated": is_dated(self.used_parameters),
            "without": changelist.get_query_string(remove=names),
        }

    def _errors(self) -> list[str]:
        texts = [str(text) for name in MOMENTS if (text := self.used_parameters.get(name))]
        wrong = [text[:MAX_TEXT_SHOWN] for text in texts if parse_param(text) is None]
        message = gettext(
            "“%(text)s” is not a date and time; write it like 2026-11-27T03:00, if needed with a time zone."
        )
        return [message % {"text": text} for text in wrong]


# Labels of events whose lease is the term of a leader.
ELECTION_LABELS = {EventKind.ACQUIRED: _("elected"), EventKind.RELEASED: _("resigned")}
KIND_CHOICES = [
    (
        what.value,
        format_lazy("{}, {}", what.label, ELECTION_LABELS[what]) if what in ELECTION_LABELS else what.label,
    )
    for what in EventKind
]
WhatFilter = choice_filter(
    "what",
    _("event"),
    KIND_CHOICES,
    lambda rows, what: rows.acquisitions() if what == EventKind.ACQUIRED else rows.filter(what=what),
)
WhereFilter = choice_filter(
    "pool",
    _("pool"),
    lambda: [(model._meta.label_lower, model._meta.verbose_name_plural) for model in models_with_events()],
)


def by_whom(text: str) -> Q:
    """Return a condition on events of an operator, a host, or a holder whose name starts with ``text``."""
    return Q(actor=text) | Q(host=text) | Q(holder__startswith=text)


WhoFilter = text_filter(
    "who", _("who"), _("operator, holder or host"), lambda events, text: events.filter(by_whom(text))
)


def newest(rows: Any) -> Any:
    """Return those of ``rows`` that are among the newest ``NEWEST`` of their table."""
    last = rows.model._default_manager.aggregate(last=Max("pk"))["last"] or 0
    return rows.filter(pk__gt=last - NEWEST)
