"""The areas of the mutation score; ``make mutations`` measures it."""

import pytest

from tests.guards.tree import ROOT
from tests.mutations import AREAS, SURVIVED, UNTESTED, Score


@pytest.mark.parametrize("name", AREAS)
def test_modules_and_tests_of_an_area_are_there(name: str) -> None:
    area = AREAS[name]
    assert all(any(ROOT.glob(pattern)) for pattern in area.modules)
    assert all((ROOT / test).exists() for test in area.tests)


def test_a_score_counts_what_was_tried_alone() -> None:
    score = Score({1: ["a", "b"], 36: ["c"], SURVIVED: ["d"], UNTESTED: ["e"], None: ["f"] * 9})
    assert score.tried == 5
    assert str(score).split() == ["3", "1", "1", "9", "60.0", "%"]
