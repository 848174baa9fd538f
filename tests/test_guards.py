"""The list of guards itself; ``make mutations`` shows whether the tests detect their removal."""

import ast

import pytest

from tests.guards import MUTATIONS, Mutation
from tests.locks.channels.proof import prove as channels
from tests.locks.proof import prove as locks
from tests.mutations import ROOT
from tests.queues.proof import prove as queues
from tests.taskqueue.dispenser.proof import prove as dispensers

PROVED = dict.fromkeys([*MUTATIONS, *queues.CASES, *dispensers.CASES, *locks.CASES, *channels.CASES])


@pytest.mark.parametrize("mutation", PROVED, ids=lambda mutation: mutation.name)
def test_a_guard_stands_where_the_list_says(mutation: Mutation) -> None:
    text = (ROOT / "resourcepool" / mutation.file).read_text()
    assert text.count(mutation.guard) == 1
    ast.parse(text.replace(mutation.guard, mutation.without))  # red for want of a line would prove nothing
    assert all((ROOT / test).exists() for test in mutation.tests)
