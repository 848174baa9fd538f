"""Counting by how many places those who waited were overtaken."""

import pytest

from benchmarks.order import places_overtaken


@pytest.mark.parametrize(
    ("grants", "expected"),
    [
        ([], []),
        ([(1, 0.0), (2, 1.0), (3, 2.0)], [0, 0, 0]),
        ([(3, 2.0), (1, 0.0), (2, 1.0)], [0, 0, 0]),
        ([(1, 1.0), (2, 0.0)], [0, 1]),
        ([(1, 9.0), (2, 0.0), (3, 1.0), (4, 9.5)], [0, 0, 0, 2]),
        ([(1, 3.0), (2, 2.0), (3, 1.0)], [0, 1, 2]),
    ],
)
def test_everybody_is_overtaken_by_those_with_a_later_ticket_who_were_served_before(
    grants: list[tuple[int, float]], expected: list[int]
) -> None:
    assert places_overtaken(grants) == expected


def test_grants_of_the_warm_up_overtake_and_are_not_counted() -> None:
    assert places_overtaken([(1, 5.0), (4, 6.0)], [(2, 4.0), (3, 4.5), (5, 9.0)]) == [0, 2]
