"""The filters beside the lists."""

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from resourcepool.resources.state import State, Status, Verdict
from resourcepool.resources.tags import words
from resourcepool.status.holders import on_host
from resourcepool.status.pools import in_state

HELD, NEVER = "held", "never"
AFTER_A_LEASE = (Status.QUARANTINED, Status.RESERVED, Status.RETIRED)  # called as the states that they lead to


class StateFilter(admin.SimpleListFilter):
    """By what the resource is doing now; "held" is leased or draining. What comes after a lease may be yet to come."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return [(HELD, _("held (leased or draining)")), *State.choices]

    def queryset(self, request: Any, queryset: Any) -> Any:
        wanted = self.value()
        if wanted == HELD:
            return queryset.held()
        if wanted not in State.values:
            return queryset
        later = Q(in_state(State.DRAINING), status=wanted) if wanted in AFTER_A_LEASE else Q(pk__in=())
        return queryset.filter(in_state(State(wanted)) | later)


class VerdictFilter(admin.SimpleListFilter):
    """By what the last check found."""

    title, parameter_name = _("last check"), "verdict"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return [*Verdict.choices, (NEVER, _("never checked"))]

    def queryset(self, request: Any, queryset: Any) -> Any:
        wanted = self.value()
        if wanted == NEVER:
            return queryset.filter(checked_at=None)
        return queryset.filter(verdict=wanted) if wanted in Verdict.values else queryset


class TextFilter(admin.SimpleListFilter):
    """A filter into which one types; works without JavaScript."""

    template = "resourcepool/admin/text_filter.html"
    hint: Any = ""

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return []

    def has_output(self) -> bool:
        return True

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Yield what the one form needs: the text, and the other parameters of the page."""
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
        return queryset.none() if "\0" in text else self.narrow(queryset, text)

    def narrow(self, rows: Any, text: str) -> Any:
        """Return those of ``rows`` that ``text`` asks for."""
        raise NotImplementedError


class HolderFilter(TextFilter):
    """By who has it: those whose running lease has a holder that begins so."""

    title, parameter_name, hint = _("holder"), "held_by", _("how it begins")

    def narrow(self, rows: Any, text: str) -> Any:
        return rows.held().filter(holder__startswith=text)


class HostFilter(TextFilter):
    """By the host of the holder, as its default name or the history tells it."""

    title, parameter_name, hint = _("host of the holder"), "on_host", _("its whole name")

    def narrow(self, rows: Any, text: str) -> Any:
        return on_host(rows.held(), text)


class TagFilter(TextFilter):
    """By tags: all that are entered."""

    title, parameter_name, hint = _("tags"), "tag", _("one or several")

    def narrow(self, rows: Any, text: str) -> Any:
        try:
            wanted = words(text)
        except ValueError:
            return rows.none()
        return rows.filter(Q(*(("tags__contains", f" {word} ") for word in wanted)))


class CountryFilter(TextFilter):
    """By country: two letters."""

    title, parameter_name, hint = _("country"), "in_country", _("two letters")

    def narrow(self, rows: Any, text: str) -> Any:
        return rows.filter(country=text.upper())
