"""Charts: the paths and texts for given values."""

import re
from collections.abc import Callable, Sequence

import pytest

from resourcepool.dashboard.chart import (
    HEIGHT,
    WIDTH,
    Series,
    Values,
    area_path,
    axis_top,
    bars_path,
    chart,
    line_path,
)


def moves(path: str) -> list[str]:
    return re.findall(r"M[^M]*", path)


def drawn(*values: float | None, style: str = "area", name: str = "Leased") -> Series:
    return Series(name, "css", style, values)


@pytest.mark.parametrize(
    ("highest", "top"),
    [(0, 1), (0.3, 1), (1, 1), (1.1, 2), (3, 5), (7, 10), (10, 10), (11, 20), (480, 500), (100_000, 100_000)],
)
def test_the_axis_ends_at_a_round_number_not_below_the_highest(highest: float, top: float) -> None:
    assert axis_top(highest) == top


@pytest.mark.parametrize(
    ("values", "stretches"),
    [
        ((1, 2, 3), 1),
        ((None, 1, None, 2, 2, None), 2),
        ((None, None), 0),
        ((5,), 1),
        ((None, 0), 1),
    ],
)
@pytest.mark.parametrize("draw", [line_path, area_path])
def test_a_path_breaks_where_there_is_no_data(
    draw: Callable[[Values, float], str], values: Values, stretches: int
) -> None:
    assert len(moves(draw(values, 5))) == stretches


def test_a_value_fills_its_own_interval() -> None:
    assert line_path((None, 5, None), 5) == f"M{WIDTH / 3:.1f} 0.0 V0.0 H{2 * WIDTH / 3:.1f}"
    assert area_path((2.5,), 5) == f"M0.0 {HEIGHT} L0.0 {HEIGHT / 2} V{HEIGHT / 2} H{WIDTH}.0 V{HEIGHT} Z"


def test_only_values_above_zero_have_a_bar() -> None:
    assert len(moves(bars_path((0, 3, None, 1), 5))) == 2


@pytest.mark.parametrize("values", [(1, 4, 2), (0, 0), (1e9, 3), (0.2, 0.7)])
def test_paths_stay_inside_the_plot_area(values: Sequence[float]) -> None:
    top = axis_top(max(values))
    for path in (line_path(values, top), area_path(values, top)):
        points = [float(one) for one in re.findall(r"[MLHV ](-?\d+(?:\.\d+)?)", path)]
        assert all(0 <= one <= WIDTH for one in points)


class TestAChart:
    def test_marks_the_gaps(self) -> None:
        assert len(moves(chart("In use", [drawn(1, None, None, 2, None)]).gaps)) == 2
        assert chart("In use", [drawn(1, 2)]).gaps == ""

    def test_describes_its_values(self) -> None:
        shown = chart("In use", [drawn(3, 40, None, 12), drawn(None, None, None, None, name="Free")])
        assert shown.text == "Leased: 12 at the end, between 3 and 40. Free: no data"
        assert shown.top == "50"

    def test_of_nothing_is_empty(self) -> None:
        shown = chart("In use", [drawn(None, None)])
        assert [path for _css, path in shown.shapes] == [""]
        assert shown.top == "1"
