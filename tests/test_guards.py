"""The list of guards itself; whether the tests miss them is seen by ``make mutations``."""

import pytest

from tests.guards import MUTATIONS, Mutation
from tests.mutations import ROOT
from tests.queues.proof.prove import CASES


@pytest.mark.parametrize("mutation", [*MUTATIONS, *CASES], ids=lambda mutation: mutation.name)
def test_a_guard_stands_where_the_list_says(mutation: Mutation) -> None:
    text = (ROOT / "resourcepool" / mutation.file).read_text()
    assert text.count(mutation.guard) == 1
    assert all((ROOT / test).exists() for test in mutation.tests)
