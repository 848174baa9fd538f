"""The keeper of one process, while its clients run; its waiters poll in their own threads."""

import random
from collections.abc import Sequence

from resourcepool.leases.keeper import keeper
from tests.simulation import schedule, verdict
from tests.simulation.ledger import Ledger
from tests.simulation.operation import Operation
from tests.simulation.participant import Participant
from tests.simulation.schedule import Process


class Background:
    """The background threads of one process."""

    def __init__(
        self, process: Process, ledger: Ledger, rng: random.Random, clients: Sequence[Participant]
    ) -> None:
        self.process, self._ledger, self._rng, self._clients = process, ledger, rng, clients

    @property
    def is_done(self) -> bool:
        """Whether all clients have ended."""
        return all(client.is_done for client in self._clients)

    def keep(self) -> None:
        """The work of the keeper's two threads."""
        while not self.is_done:
            self._beat()
            schedule.now_running().sleep(self._rng.choice((0.05, 0.3, 0.33)))

    def _beat(self) -> None:
        keeper._watch_once()
        pairs = tuple((lease.pk, lease.fence) for lease in keeper.leases())
        operation = Operation("beat", self.process, self._ledger, ("renew",), pairs)
        operation.run(lambda: keeper._renew_due_leases("default"))
        verdict.confirmed(operation)
