"""The base of every simulated process: its handles, its operations, and the judgement of results."""

import random
from typing import Any

from resourcepool.exceptions import LeaseLost
from resourcepool.resources.lease import ResourceLease
from tests.simulation import verdict
from tests.simulation.ledger import Ledger, Pair
from tests.simulation.operation import Held, Operation
from tests.simulation.schedule import Process


class Participant:
    """One process and its handles.

    Attributes:
        length: number of operations.
        mail: grants that were handed over and not adopted yet; shared by all processes.
        waits: the weight of waiting in line among its operations.
    """

    def __init__(
        self, process: Process, ledger: Ledger, rng: random.Random, mail: list[Pair], length: int
    ) -> None:
        self.process, self.ledger, self.rng, self.mail, self.length = process, ledger, rng, mail, length
        self.held: list[Held] = []
        self.given_back: list[Any] = []
        self.waits = 0.0
        self.is_done = False

    def operation(
        self, name: str, may: tuple[str, ...], *targets: Pair, ttl: float = 0.0, cooldown: float = 0.0
    ) -> Operation:
        """Return a new operation of this process; times in seconds."""
        times = {"ttl": round(ttl * 1_000), "cooldown": round(cooldown * 1_000)}
        return Operation(name, self.process, self.ledger, may, targets, **times)

    def leave(self) -> None:
        """Note that it is done."""
        self.is_done = True

    def any_held(self) -> Held:
        """Return one of its handles."""
        return self.rng.choice(self.held)

    def resources(self) -> list[Held]:
        """Return its handles that can be put in quarantine."""
        return [held for held in self.held if isinstance(held.lease, ResourceLease)]

    def keep_handles(self, leases: list[Any], ttl: float) -> None:
        """Note its leases."""
        self.held += [Held(lease, (lease.pk, lease.fence), ttl) for lease in leases]

    def after_renewal(self, operation: Operation, held: Held, outcome: Any) -> None:
        """Judge the result, and drop lost handles."""
        verdict.renewed(operation, held, outcome)
        if isinstance(outcome, LeaseLost):
            self.held.remove(held)

    def after_ending(self, operation: Operation, held: Held, kind: str, outcome: Any) -> bool:
        """Judge the result, and drop an ended handle; returns whether it has ended."""
        is_over = verdict.given_up(operation, held, kind, outcome)
        if is_over and not isinstance(outcome, Exception):
            self.given_back.append(held.lease)
        held.is_in_doubt = held.is_in_doubt or not is_over
        if is_over:
            self.held.remove(held)
        return is_over
