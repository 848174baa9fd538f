"""Charts as SVG, drawn here so that a page needs no script for them. Pure functions: numbers in, text out."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.utils.formats import number_format
from django.utils.translation import gettext as _

WIDTH, HEIGHT = 300, 84  # of the area that is drawn in, in units of the SVG

Values = Sequence[float | None]  # from the oldest to now; None where nothing is known


@dataclass(frozen=True, slots=True)
class Series:
    """One row of figures, and how it is drawn: ``style`` is "area", "line" or "bars", ``css`` its class."""

    name: str
    css: str
    style: str
    values: Values


@dataclass(frozen=True, slots=True)
class Chart:
    """What the template puts into the SVG.

    Attributes:
        shapes: (class, path) for each series.
        gaps: the path over the times of which nothing is known.
        top: the figure at the upper end of the axis.
        text: what the chart shows, for those who do not see it.
        key: (class, name) of each series, if there are several to be told apart.
    """

    title: str
    shapes: list[tuple[str, str]]
    gaps: str
    top: str
    text: str
    key: list[tuple[str, str]]


def chart(title: str, series: Sequence[Series]) -> Chart:
    """Draw these, which must be equally long, over one axis that begins at 0."""
    known = [value for one in series for value in one.values if value is not None]
    top = nice_top(max(known, default=0.0))
    missing: Values = [1.0 if value is None else None for value in series[0].values]
    return Chart(
        title=title,
        shapes=[(one.css, DRAW[one.style](one.values, top)) for one in series],
        gaps=area(missing, 1.0),
        top=number(top),
        text=". ".join(localized(one) for one in series),
        key=[(one.css, one.name) for one in series] if len(series) > 1 else [],
    )


def nice_top(highest: float) -> float:
    """Return the next of 1, 2, 5, 10, 20, 50 .. that is not below ``highest``."""
    if highest <= 1:
        return 1.0
    size = 10.0 ** math.floor(math.log10(highest))
    return next(step * size for step in (1, 2, 5, 10) if step * size >= highest)


def localized(series: Series) -> str:
    known = [value for value in series.values if value is not None]
    if not known:
        return _("%(name)s: nothing is known") % {"name": series.name}
    numbers = {
        "name": series.name,
        "last": number(known[-1]),
        "low": number(min(known)),
        "high": number(max(known)),
    }
    return _("%(name)s: %(last)s at the end, between %(low)s and %(high)s") % numbers


def number(value: float) -> str:
    """Return a figure for people: one decimal below 10, none above."""
    if value < 10 and value != int(value):
        return number_format(value, 1)
    return number_format(round(value), 0, use_l10n=True, force_grouping=True)


def line(values: Values, top: float) -> str:
    """Return the path of a line with a step at each change, broken where nothing is known."""
    return " ".join(f"M{_x(start, values)} {_steps(start, run, values, top)}" for start, run in _runs(values))


def area(values: Values, top: float) -> str:
    """Return the path of the area below such a line."""
    return " ".join(
        f"M{_x(start, values)} {HEIGHT} L{_x(start, values)} {_steps(start, run, values, top)} V{HEIGHT} Z"
        for start, run in _runs(values)
    )


def bars(values: Values, top: float) -> str:
    """Return the path of a bar for each figure above 0."""
    width = max(1.0, WIDTH / max(1, len(values)) - 1)
    return " ".join(
        f"M{_x(index, values)} {HEIGHT} V{_y(value, top)} h{width:.1f} V{HEIGHT} Z"
        for index, value in enumerate(values)
        if value
    )


DRAW: dict[str, Callable[[Values, float], str]] = {"line": line, "area": area, "bars": bars}


def _steps(start: int, run: Sequence[float], values: Values, top: float) -> str:
    """Return the way along a run, beginning at the height of its first figure."""
    way = " ".join(f"V{_y(value, top)} H{_x(start + index + 1, values)}" for index, value in enumerate(run))
    return f"{_y(run[0], top)} {way}"


def _runs(values: Values) -> Iterator[tuple[int, list[float]]]:
    """Yield the index and the figures of each stretch without a gap."""
    for is_known, run in groupby(enumerate(values), key=lambda item: item[1] is not None):
        if is_known:
            found = [(index, value) for index, value in run if value is not None]
            yield found[0][0], [value for _index, value in found]


def _x(index: int, values: Values) -> str:
    return f"{index * WIDTH / len(values):.1f}"


def _y(value: float, top: float) -> str:
    return f"{HEIGHT - min(value, top) / top * HEIGHT:.1f}"
