"""The two kinds of filters beside lists: a choice of values (``choice_filter``), and a text field (``text_filter``)."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.contrib import admin

from resourcepool.admin.paging import NUL
from resourcepool.translation import gettext_lazy as _

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
