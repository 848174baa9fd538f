"""What the clients of a schedule do: the package's own API, in an order that the seed decides."""

import contextlib
import random
from collections.abc import Callable
from typing import Any

from django.db import DatabaseError, connections, transaction

from resourcepool.exceptions import (
    AcquireTimeout,
    ClaimInTransaction,
    GuardOutsideTransaction,
    LeaseLost,
    LeaseReleased,
)
from resourcepool.leases import verbs
from resourcepool.leases.holder import default_holder
from resourcepool.leases.keeper import keeper
from resourcepool.leases.lease import Lease
from resourcepool.leases.terms import Terms
from resourcepool.models import Proxy
from resourcepool.resources.lease import ResourceLease
from tests.simulation import schedule, verdict
from tests.simulation.ledger import Ledger, Pair
from tests.simulation.operation import Held, Operation
from tests.simulation.schedule import Process

TTLS = (1.0, 2.0)  # seconds
COOLDOWNS = (0.0, 0.0, 0.5)
MOST_HELD = 3


class Undo(Exception):
    """The caller rolls its own transaction back."""


class Client:
    """One process: what it holds, and the programs of its threads."""

    def __init__(
        self, process: Process, ledger: Ledger, rng: random.Random, mail: list[Pair], length: int
    ) -> None:
        self.process, self.length = process, length
        self.held: list[Held] = []
        self._ledger, self._rng, self._mail = ledger, rng, mail
        self._given_back: list[Any] = []
        self._copy: Any = None
        self.is_done = False

    # Programs

    def main(self) -> None:
        """Do some things, then end in one of several ways."""
        for _ in range(self.length):
            options = self._options()
            self._rng.choices(list(options), list(options.values()))[0]()
        if self._rng.random() < 0.5:
            self.exit()
        self.is_done = True

    def keep(self) -> None:
        """What the keeper's two threads do, as long as the main thread runs."""
        while not self.is_done:
            self.beat()
            schedule.now_running().sleep(self._rng.choice((0.05, 0.3, 0.33)))

    def end(self) -> None:
        """Long after: every loss has been noticed, and every handle says so."""
        keeper._watch_once()
        for held in self.held:
            if held.lease.is_held or not held.lease.lost.is_set():
                verdict.blame(f"(5) {held.lease!r} was lost long ago, and does not know")
            with contextlib.suppress(LeaseLost):
                held.lease.ensure_held()
                verdict.blame(f"(5) {held.lease!r} was lost long ago, and ensure_held() does not tell")

    def _options(self) -> dict[Callable[[], None], float]:
        options: dict[Callable[[], None], float] = {self.operate: 0.3, self.save: 0.3, self.misuse: 0.1}
        if len(self.held) < MOST_HELD:
            options |= {self.claim: 4, self.acquire: 0.7, self.acquire_two: 0.7}
        if self._mail:
            options[self.adopt] = 3
        if self.held:
            options |= {self.renew: 1.5, self.work: 2, self.ensure_held: 0.5, self.guard: 4, self.release: 3}
            options |= {self.hand_over: 1.5}
        if self._resources():
            options |= {self.quarantine: 1.5, self.fix: 0.5}
        if self._given_back:
            options[self.use_again] = 0.3
        return options

    # Operations

    def claim(self) -> None:
        """The bare verb, on a row that may be anything."""
        ttl, cooldown = self._rng.choice(TTLS), self._rng.choice(COOLDOWNS)
        operation = self._operation("claim", ("claim",), ttl=ttl)
        pk, holder = self._rng.choice(list(self._ledger.rows)), default_holder()
        wanted = verbs.Claim(ttl, holder, holder_is_unique=True)
        grant = operation.run(lambda: verbs.claim(connections["default"], Proxy, pk, wanted))
        if not isinstance(grant, Exception):
            terms = Terms(ttl, holder, cooldown)
            leases = [] if grant is None else [Lease(Proxy, "default", grant, terms)]
            verdict.granted(operation, leases)
            self._keep(leases, ttl)

    def acquire(self) -> None:
        self._acquire(1)

    def acquire_two(self) -> None:
        self._acquire(2)

    def _acquire(self, count: int) -> None:
        ttl, cooldown = self._rng.choice(TTLS), self._rng.choice(COOLDOWNS)
        operation = self._operation(f"acquire {count}", ("claim", "revive"), ttl=ttl)
        leases = operation.run(lambda: Proxy.pool.acquire_many(count, wait=False, ttl=ttl, cooldown=cooldown))
        if isinstance(leases, Exception):
            return
        if leases is not None and len(leases) != count:
            verdict.blame(f"(6) asked for {count}, got {leases}")
        verdict.granted(operation, leases or [])
        self._keep(leases or [], ttl)

    def adopt(self) -> None:
        pair, ttl = self._mail.pop(0), self._rng.choice(TTLS)
        operation = self._operation("adopt", ("renew",), pair, ttl=ttl)
        lease = operation.run(lambda: Proxy.pool.adopt(*pair, ttl=ttl), LeaseLost)
        if isinstance(lease, LeaseLost):
            if self._ledger.is_live(pair, schedule.now_running().now):
                verdict.blame(f"(5) {operation} was told that it is lost, and it runs")
        elif not isinstance(lease, Exception):
            if not operation.was_live:
                verdict.blame(f"(5) {operation} took up what had been lost")
            grant = self._ledger.grants[pair]
            grant.process, grant.ttl, grant.sent_by = self.process, round(ttl * 1_000), operation.began_at
            self._keep([lease], ttl)

    def renew(self) -> None:
        held = self._any()
        operation = self._operation("renew", ("renew",), held.pair, ttl=held.ttl)
        self._after_renewal(operation, held, operation.run(held.lease.renew, LeaseLost))

    def guard(self) -> None:
        held, rolls_back, writes_first = self._any(), self._rng.random() < 0.3, self._rng.random() < 0.3
        works_for = self._rng.choice((0, 0, 0.3, 1.5))

        def work() -> None:
            with contextlib.suppress(Undo), transaction.atomic():
                if writes_first:
                    _write(held.pair)
                with held.lease.guard():
                    if works_for:
                        schedule.now_running().sleep(works_for)
                    _write(held.pair)
                if rolls_back:
                    raise Undo

        operation = self._operation("guard", ("renew",), held.pair, ttl=held.ttl)
        operation.writes = True
        outcome = operation.run(work, LeaseLost, DatabaseError)
        if isinstance(outcome, DatabaseError) and not operation.failures:
            raise outcome
        self._after_renewal(operation, held, outcome)

    def ensure_held(self) -> None:
        held = self._any()
        operation = self._operation("ensure_held", (), held.pair)
        outcome = operation.run(held.lease.ensure_held, LeaseLost)
        if outcome is None and not self._ledger.is_live(held.pair, schedule.now_running().now):
            verdict.blame(f"(2) {operation} passed")
        if outcome is not None:
            self._after_renewal(operation, held, outcome)

    def release(self) -> None:
        held = self._any()
        cooldown = held.lease.terms.cooldown
        operation = self._operation("release", ("release",), held.pair, cooldown=cooldown)
        self._after_ending(operation, held, "release", operation.run(held.lease.release, LeaseLost))

    def hand_over(self) -> None:
        held, ttl = self._any(), self._rng.choice(TTLS)
        heir = f"heir of {self.process.name}"
        operation = self._operation("hand over", ("hand over",), held.pair, ttl=ttl)
        operation.heir = heir
        fence = operation.run(lambda: held.lease.hand_over(heir, ttl=ttl), LeaseLost)
        if self._after_ending(operation, held, "hand over", fence) and not isinstance(fence, Exception):
            self._mail.append((held.pair[0], fence))

    def quarantine(self) -> None:
        held = self._rng.choice(self._resources())
        operation = self._operation("quarantine", ("park",), held.pair)
        outcome = operation.run(lambda: held.lease.quarantine("banned"), LeaseLost)
        self._after_ending(operation, held, "park", outcome)

    def fix(self) -> None:
        held = self._rng.choice(self._resources())
        operation = self._operation("fix", ("park", "claim", "revive"), held.pair, ttl=held.ttl)
        outcome = operation.run(lambda: held.lease.fix("banned", timeout=0), LeaseLost, AcquireTimeout)
        if outcome is None:
            self.held.remove(held)
            verdict.granted(operation, [held.lease])
            self._keep([held.lease], held.ttl)
        elif isinstance(outcome, AcquireTimeout) or operation.did("park"):
            self.held.remove(held)
        else:
            self._after_ending(operation, held, "park", outcome)

    def work(self) -> None:
        schedule.now_running().sleep(self._rng.choice((0.1, 0.5, 0.95, 1.05, 2.5)))

    def operate(self) -> None:
        """Somebody in the admin."""
        rows = Proxy.objects.filter(pk=self._rng.choice(list(self._ledger.rows)))
        if self._rng.random() < 0.4:
            duration = self._rng.choice((None, 0.5))
            operation = self._operation("take out", ("take out",))
            outcome = operation.run(lambda: rows.take_out("upkeep", duration=duration), DatabaseError)
        else:
            operation = self._operation("return to service", ("return",))
            outcome = operation.run(rows.return_to_service, DatabaseError)
        if isinstance(outcome, DatabaseError) and not operation.failures:
            raise outcome

    def save(self) -> None:
        """Somebody saves what was read a while ago."""
        operation = self._operation("save", ())
        if self._copy is None:
            pk = self._rng.choice(list(self._ledger.rows))
            outcome = operation.run(lambda: setattr(self, "_copy", Proxy.objects.get(pk=pk)), DatabaseError)
        else:
            self._copy.notes += "."
            outcome = operation.run(self._copy.save, DatabaseError)
            self._copy = None
        if isinstance(outcome, DatabaseError) and not operation.failures:
            raise outcome

    def misuse(self) -> None:
        """What is refused: claiming inside a transaction, guarding outside of one, using what was given back."""

        def claim() -> None:
            with transaction.atomic():
                Proxy.pool.acquire(wait=False)

        refused = self._operation("acquire in a transaction", ())
        outcome = refused.run(claim, ClaimInTransaction, DatabaseError)
        if not isinstance(outcome, ClaimInTransaction) and not refused.failures:
            verdict.blame(f"(7) {refused}: {outcome!r}")
        if self.held:
            held = self._any()
            operation = self._operation("guard outside a transaction", (), held.pair)
            outcome = operation.run(lambda: held.lease.guard().__enter__(), GuardOutsideTransaction, LeaseLost)
            if isinstance(outcome, LeaseLost):
                self._after_renewal(operation, held, outcome)
            elif not isinstance(outcome, GuardOutsideTransaction):
                verdict.blame(f"(7) {operation}: {outcome!r}")

    def use_again(self) -> None:
        lease = self._given_back.pop()
        operation = self._operation("use again", ())
        use = self._rng.choice((lease.renew, lease.release, lease.ensure_held))
        outcome = operation.run(use, LeaseReleased)
        if not isinstance(outcome, LeaseReleased):
            verdict.blame(f"(6) a lease that was given back could be used: {outcome!r}")

    def exit(self) -> None:
        """End in an orderly way: everything goes back in one statement, tried once."""
        leases, pairs = keeper.kept(), tuple((held.lease.pk, held.lease.fence) for held in self.held)
        pairs = tuple(pair for pair in pairs if pair in {(lease.pk, lease.fence) for lease in leases})
        self.held, self.is_done = [], True
        if pairs:
            operation = self._operation("exit", ("release",), *pairs)
            connection = connections["default"]
            operation.run(lambda: verbs.release_all(connection, Proxy, pairs, 0.0), DatabaseError)

    def beat(self) -> None:
        """One turn of each of the keeper's loops."""
        keeper._watch_once()
        pairs = tuple((lease.pk, lease.fence) for lease in keeper.kept())
        operation = self._operation("beat", ("renew",), *pairs)
        operation.run(keeper._beat_once)
        verdict.confirmed(operation)

    def _operation(
        self, name: str, may: tuple[str, ...], *targets: Pair, ttl: float = 0.0, cooldown: float = 0.0
    ) -> Operation:
        times = {"ttl": round(ttl * 1_000), "cooldown": round(cooldown * 1_000)}
        return Operation(name, self.process, self._ledger, may, targets, **times)

    def _any(self) -> Held:
        return self._rng.choice(self.held)

    def _resources(self) -> list[Held]:
        return [held for held in self.held if isinstance(held.lease, ResourceLease)]

    def _keep(self, leases: list[Any], ttl: float) -> None:
        self.held += [Held(lease, (lease.pk, lease.fence), ttl) for lease in leases]

    def _after_renewal(self, operation: Operation, held: Held, outcome: Any) -> None:
        verdict.renewed(operation, held, outcome)
        if isinstance(outcome, LeaseLost):
            self.held.remove(held)

    def _after_ending(self, operation: Operation, held: Held, kind: str, outcome: Any) -> bool:
        is_over = verdict.given_up(operation, held, kind, outcome)
        if is_over and not isinstance(outcome, Exception):
            self._given_back.append(held.lease)
        # Nobody knows what became of it when the server went away with the answer. The handle goes on trusting
        # itself then, which is too much; see "What it found" in docs/simulation.md.
        if is_over or operation.cuts:
            self.held.remove(held)
        return is_over


def _write(pair: Pair) -> None:
    """Write to the fenced target, as a holder's work would."""
    with connections["default"].cursor() as cursor:
        cursor.execute("UPDATE target SET fence = %s, writes = writes + 1 WHERE pk = %s", [pair[1], pair[0]])
