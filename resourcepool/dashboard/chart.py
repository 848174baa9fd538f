"""Charts as SVG paths, so that the page needs no JavaScript for them. Pure functions: numbers in, text out."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.utils.formats import number_format

from resourcepool.translation import gettext as _

WIDTH, HEIGHT = 300, 84  # of the plot area, in SVG units

Values = Sequence[float | None]  # oldest first; None: no data


@dataclass(frozen=True, slots=True)
class Series:
    """One series of values; ``style`` is "area", "line" or "bars", ``css`` the class of its path."""

    name: str
    css: str
    style: str
    values: Values


@dataclass(frozen=True, slots=True)
class Chart:
    """The content of the SVG.

    Attributes:
        shapes: (CSS class, path) of each series.
        gaps: the path of the areas without data.
        top: the value at the upper end of the axis.
        text: the accessible description.
        key: (CSS class, name) of each series, if there are several.
    """

    title: str
    shapes: list[tuple[str, str]]
    gaps: str
    top: str
    text: str
    key: list[tuple[str, str]]


def chart(title: str, series: Sequence[Series]) -> Chart:
    """Return a chart of ``series``, all of the same length, over an axis that begins at 0."""
    known = [value for item in series for value in item.values if value is not None]
    top = axis_top(max(known, default=0.0))
    missing: Values = [1.0 if value is None else None for value in series[0].values]
    return Chart(
        title=title,
        shapes=[(item.css, PATHS[item.style](item.values, top)) for item in series],
        gaps=area_path(missing, 1.0),
        top=format_value(top),
        text=". ".join(description(item) for item in series),
        key=[(item.css, item.name) for item in series] if len(series) > 1 else [],
    )


def axis_top(highest: float) -> float:
    """Return the smallest of 1, 2, 5, 10, 20, 50 .. that is at least ``highest``."""
    if highest <= 1:
        return 1.0
    size = 10.0 ** math.floor(math.log10(highest))
    return next(step * size for step in (1, 2, 5, 10) if step * size >= highest)


def description(series: Series) -> str:
    """Return the last, lowest and highest value of ``series`` in words."""
    known = [value for value in series.values if value is not None]
    if not known:
        return _("%(name)s: no data") % {"name": series.name}
    values = {
        "name": series.name,
        "last": format_value(known[-1]),
        "low": format_value(min(known)),
        "high": format_value(max(known)),
    }
    return _("%(name)s: %(last)s at the end, between %(low)s and %(high)s") % values


def format_value(value: float) -> str:
    """Return ``value`` with one decimal below 10, with none above."""
    if value < 10 and value != int(value):
        return number_format(value, 1)
    return number_format(round(value), 0, use_l10n=True, force_grouping=True)


def line_path(values: Values, top: float) -> str:
    """Return the path of a step line, interrupted where there is no data."""
    return " ".join(f"M{_x(start, values)} {_steps(start, run, values, top)}" for start, run in _runs(values))


def area_path(values: Values, top: float) -> str:
    """Return the path of the area below a step line."""
    return " ".join(
        f"M{_x(start, values)} {HEIGHT} L{_x(start, values)} {_steps(start, run, values, top)} V{HEIGHT} Z"
        for start, run in _runs(values)
    )


def bars_path(values: Values, top: float) -> str:
    """Return the path of a bar for each value above 0."""
    width = max(1.0, WIDTH / max(1, len(values)) - 1)
    return " ".join(
        f"M{_x(index, values)} {HEIGHT} V{_y(value, top)} h{width:.1f} V{HEIGHT} Z"
        for index, value in enumerate(values)
        if value
    )


PATHS: dict[str, Callable[[Values, float], str]] = {"line": line_path, "area": area_path, "bars": bars_path}


def _steps(start: int, run: Sequence[float], values: Values, top: float) -> str:
    """Return the path along a run, beginning at the height of its first value."""
    steps = " ".join(f"V{_y(value, top)} H{_x(start + index + 1, values)}" for index, value in enumerate(run))
    return f"{_y(run[0], top)} {steps}"


def _runs(values: Values) -> Iterator[tuple[int, list[float]]]:
    """Yield the start index and the values of each run without a gap."""
    for is_known, run in groupby(enumerate(values), key=lambda item: item[1] is not None):
        if is_known:
            points = [(index, value) for index, value in run if value is not None]
            yield points[0][0], [value for _index, value in points]


def _x(index: int, values: Values) -> str:
    return f"{index * WIDTH / len(values):.1f}"


def _y(value: float, top: float) -> str:
    return f"{HEIGHT - min(value, top) / top * HEIGHT:.1f}"
