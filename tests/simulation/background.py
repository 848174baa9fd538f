"""The package's background threads in one process, while its clients run."""

import random
from collections.abc import Sequence

from resourcepool.leases.keeper import keeper
from resourcepool.waiting.ticket_wakeups import ticket_wakeups
from resourcepool.waiting.waiter import Waiter
from resourcepool.waiting.waiters import waiters
from tests.simulation import schedule, verdict
from tests.simulation.clients import COOLDOWNS
from tests.simulation.ledger import Ledger
from tests.simulation.operation import Operation
from tests.simulation.participant import Participant
from tests.simulation.schedule import Process

RESTS = tuple(round(cooldown * 1_000) for cooldown in COOLDOWNS)
SERVES = ("give", "take back", "pass on", "release", "renew", "revive")


class Background:
    """The keeper and the waiters' thread of one process."""

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

    def serve(self) -> None:
        """The work of the waiters' thread."""
        while not self.is_done:
            ticket_wakeups.wakeup("default").reset()
            operation = Operation("serve", self.process, self._ledger, SERVES)
            operation.serves, operation.asked, operation.rests = True, _asked, RESTS
            ticket_wakeups.wakeup("default").sleep_until(operation.run(lambda: waiters._serve_once("default")))

    def _beat(self) -> None:
        keeper._watch_once()
        pairs = tuple((lease.pk, lease.fence) for lease in keeper.leases())
        operation = Operation("beat", self.process, self._ledger, ("renew",), pairs)
        operation.run(lambda: keeper._renew_due_leases("default"))
        verdict.confirmed(operation)


def _asked() -> dict[str, int]:
    """Return the ttl in milliseconds that each waiter requests, by holder."""
    in_line: list[Waiter] = [waiter for line in waiters._waiter_loops.values() for waiter in line.waiters]
    return {waiter.holder: round(waiter.request.terms.ttl * 1_000) for waiter in in_line}
