"""Queues as people type them."""

import pytest

from resourcepool.exceptions import BadOption
from resourcepool.queues.queries import expand_ids


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["7"], ["7"]),
        (["0..3", "x"], ["0", "1", "2", "3", "x"]),
        (["08..11"], ["08", "09", "10", "11"]),
        (["eu-0..2"], ["eu-0", "eu-1", "eu-2"]),
        (["0..0"], ["0"]),
        (["a..b", "..", "1.."], ["a..b", "..", "1.."]),
    ],
)
def test_queues_are_typed_one_by_one_or_as_ranges(words: list[str], expected: list[str]) -> None:
    assert expand_ids(words) == expected


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["9..3"], "an ascending range"),
        (["0..10000"], "at most 10000 at once"),
        (["0..99999999999"], "at most 10000 at once"),
        (["0..9998", "x", "y"], "at most 10000 at once"),
    ],
)
def test_ranges_that_go_down_and_too_many_queues_are_refused(words: list[str], said: str) -> None:
    with pytest.raises(BadOption, match=said):
        expand_ids(words)
