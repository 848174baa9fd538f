"""Figures of statuses as text for pages."""

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.formats import number_format

from resourcepool.status.system import Figure, Unit
from resourcepool.status.times import duration
from resourcepool.translation import gettext as _


def number(count: float) -> str:
    """Format a whole number with thousands separators."""
    return number_format(count, 0, use_l10n=True, force_grouping=True)


SEPARATOR = ", "
WRITE: Mapping[Unit, Callable[[Any], object]] = {
    Unit.TEXT: lambda text: text or "-",
    Unit.SECONDS: lambda seconds: "" if seconds is None else duration(seconds),
    Unit.AGO: lambda seconds: "-" if seconds is None else _("%s ago") % duration(seconds),
    Unit.COUNT: number,
    Unit.COUNTS: lambda counts: SEPARATOR.join(map(number, counts)),
}


def figure_text(figure: Figure, status: Any) -> str:
    """Return a figure of a status as text."""
    return str(WRITE.get(figure.unit, str)(figure.of(status)))
