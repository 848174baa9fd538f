"""The list of guards itself; ``make guards`` shows whether the tests detect their removal."""

import ast

import pytest

from tests.chaos import prove as chaos
from tests.guards import MUTATIONS, Mutation
from tests.guards.tree import ROOT
from tests.locks.channels.proof import prove as channels
from tests.locks.proof import prove as locks
from tests.queues.proof import prove as queues
from tests.simulation.prove import all_guards
from tests.taskqueue.dispenser.proof import prove as dispensers

PROOFS = (chaos, queues, dispensers, locks, channels)
CASES = [case.mutation for proof in PROOFS for case in proof.CASES if case.mutation is not None]


@pytest.mark.parametrize(
    "mutation", dict.fromkeys([*MUTATIONS, *CASES, *all_guards()]), ids=lambda one: one.name
)
def test_a_guard_stands_where_the_list_says(mutation: Mutation) -> None:
    text = (ROOT / "resourcepool" / mutation.file).read_text()
    assert text.count(mutation.guard) == 1
    ast.parse(text.replace(mutation.guard, mutation.without))  # red for want of a line would prove nothing
    assert all((ROOT / test).exists() for test in mutation.tests)
