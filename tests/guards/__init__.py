"""The guards that can be taken out one at a time, and the tests that should miss them.

They show an invariant that a tool for mutations cannot see: it stands in the text of a statement, in a transaction
or in the order of two statements. What is decided in Python is mutated by ``make mutations``.
"""

from tests.guards.leases import LEASES
from tests.guards.mutation import Mutation
from tests.guards.systems import SYSTEMS
from tests.guards.waiting import WAITING

MUTATIONS = (*LEASES, *WAITING, *SYSTEMS)

__all__ = ["MUTATIONS", "Mutation"]
