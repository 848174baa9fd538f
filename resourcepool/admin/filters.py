"""The two kinds of filters beside lists: values to choose from (``choice_filter``), and a text to type in (``text_filter``)."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.paging import NUL

ITS_NAME = _("its name")
Narrow = Callable[[Any, str], Any]
Options = Iterable[tuple[str, Any]] | Callable[[], Iterable[tuple[str, Any]]]


class ChoiceFilter(admin.SimpleListFilter):
    options: Options
    narrow: Narrow

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return list(self.options() if callable(self.options) else self.options)

    def queryset(self, request: Any, queryset: Any) -> Any:
        wanted = self.value()
        return self.narrow(queryset, wanted) if wanted else queryset


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
        """Yield the data of the one form: its text, and the other parameters of the page."""
        others = [pair for pair in changelist.params.items() if pair[0] != self.parameter_name]
        yield {
            "name": self.parameter_name,
            "value": self.value() or "",
            "hint": self.hint,
            "others": others,
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
        name: of the parameter in the address.
        options: (value, what it is called), or what returns them.
        narrow: returns those of the rows that a value asks for; None: those with this value in the column ``name``.
    """
    offered: Any = staticmethod(options) if callable(options) else options
    about = {"parameter_name": name, "title": title, "options": offered}
    return type(f"{name}_filter", (ChoiceFilter,), about | {"narrow": staticmethod(narrow or _by_value(name))})


def text_filter(name: str, title: Any, hint: Any = ITS_NAME, narrow: Narrow | None = None) -> type[TextFilter]:
    """Return a filter with a text field; ``hint`` names the text, ``narrow`` is as in ``choice_filter``."""
    about = {"parameter_name": name, "title": title, "hint": hint}
    return type(f"{name}_filter", (TextFilter,), about | {"narrow": staticmethod(narrow or _by_value(name))})


def _by_value(name: str) -> Narrow:
    return lambda rows, value: rows.filter(**{name: value})
