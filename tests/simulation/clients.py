"""The clients of a schedule: calls of the package's API, in an order that the seed decides."""

import contextlib
from collections.abc import Callable
from typing import Any

from django.db import DatabaseError, connections, transaction

from resourcepool.exceptions import AcquireTimeout, LeaseLost
from resourcepool.leases import verbs
from resourcepool.leases.keeper import keeper
from resourcepool.leases.lease import Lease
from resourcepool.leases.terms import Terms, default_holder
from resourcepool.models import Proxy
from resourcepool.waiting.poll import poller_on
from tests.simulation import schedule, verdict
from tests.simulation.ledger import Pair
from tests.simulation.operators import OperatorProcess

TTLS = (1.0, 2.0)  # seconds
COOLDOWNS = (0.0, 0.0, 0.5)
TIMEOUTS = (0.3, 1.0, 3.0, 8.0)
RESTS = tuple(round(cooldown * 1_000) for cooldown in COOLDOWNS)  # milliseconds
PRIORITIES = (0, 0, 0, -1, 1)
FOREVER = 100.0  # seconds
MOST_HELD = 3


class Undo(Exception):
    """The caller rolls its own transaction back."""


class Client(OperatorProcess):
    """One process, and the programs of its threads."""

    # Programs

    def main(self) -> None:
        """Make some calls, then end in one of several ways."""
        for _ in range(self.length):
            options = self._options()
            self.rng.choices(list(options), list(options.values()))[0]()
        if self.rng.random() < 0.5:
            self.exit()
        self.leave()

    def queue(self) -> None:
        """Wait in line a few times without faults: the client must be served."""
        for _ in range(self.length):
            count = self.rng.choice((1, 1, 2)) if len(self.ledger.rows) > 1 else 1
            if self.wait_in_line(count, ttl=self.rng.choice(TTLS), timeout=FOREVER, cooldown=0.0) is None:
                verdict.blame(f"(8) {self.process.name} stood in line for {FOREVER} s")
            schedule.now_running().sleep(self.rng.choice((0.01, 0.1, 0.3)))
            while self.held and self.rng.random() < 0.8:
                self.release()
            self.held = []  # unreleased leases expire, because nothing renews them
        self.leave()

    def end(self) -> None:
        """Long after: every loss has been noticed, and every handle is lost."""
        keeper._watch_once()
        for held in self.held:
            if held.lease.is_held or not (held.lease.lost.is_set() or held.lease._state.is_in_doubt):
                verdict.blame(f"(5) {held.lease!r} was lost long ago, and does not know")
            with contextlib.suppress(LeaseLost):
                held.lease.ensure_held()
                verdict.blame(f"(5) {held.lease!r} was lost long ago, and ensure_held() does not tell")

    def _options(self) -> dict[Callable[[], None], float]:
        options: dict[Callable[[], None], float] = {self.operate: 0.3, self.save: 0.3, self.misuse: 0.1}
        if len(self.held) < MOST_HELD:
            options |= {self.claim: 4 * (1 - self.waits), self.acquire: 0.7, self.acquire_two: 0.7}
            options |= {self.wait_for_one: 3 * self.waits, self.use_shortly: 12 * self.waits}
            if len(self.ledger.rows) > 1:
                options[self.wait_for_two] = 2 * self.waits
        if self.mail:
            options[self.adopt] = 3
        if self.held:
            options |= {
                self.renew: 1.5,
                self.work: 2,
                self.ensure_held: 0.5,
                self.guard: 4,
                self.release: 3 + 4 * self.waits,
            }
            options |= {self.hand_over: 1.5}
        if self.resources():
            options |= {self.quarantine: 1.5, self.fix: 0.5}
        if self.given_back:
            options[self.use_again] = 0.3
        return options

    # Operations

    def claim(self) -> None:
        """The bare verb, on a row in any state."""
        ttl, cooldown = self.rng.choice(TTLS), self.rng.choice(COOLDOWNS)
        operation = self.operation("claim", ("claim",), ttl=ttl)
        pk, holder = self.rng.choice(list(self.ledger.rows)), default_holder()
        terms = Terms(ttl, holder, holder_is_unique=True, cooldown=cooldown)
        grant = operation.run(lambda: verbs.claim(connections["default"], Proxy, pk, terms))
        if not isinstance(grant, Exception):
            leases = [] if grant is None else [Lease(Proxy, "default", grant, terms)]
            verdict.granted(operation, leases)
            self.keep_handles(leases, ttl)

    def acquire(self) -> None:
        self._acquire(1)

    def acquire_two(self) -> None:
        self._acquire(2)

    def _acquire(self, count: int) -> None:
        ttl, cooldown = self.rng.choice(TTLS), self.rng.choice(COOLDOWNS)
        operation = self.operation(f"acquire {count}", ("claim", "give", "revive"), ttl=ttl)
        leases = operation.run(lambda: Proxy.pool.acquire_many(count, wait=False, ttl=ttl, cooldown=cooldown))
        if isinstance(leases, Exception):
            return
        if leases is not None and len(leases) != count:
            verdict.blame(f"(6) asked for {count}, got {leases}")
        verdict.granted(operation, leases or [])
        self.keep_handles(leases or [], ttl)

    def wait_for_one(self) -> None:
        self._wait_for(1)

    def wait_for_two(self) -> None:
        self._wait_for(2)

    def use_shortly(self) -> None:
        """Wait in line, and release the leases at once."""
        count = self.rng.choice((1, 1, 1, 2)) if len(self.ledger.rows) > 1 else 1
        self.wait_in_line(count, ttl=self.rng.choice(TTLS), timeout=self.rng.choice(TIMEOUTS), cooldown=0.0)
        schedule.now_running().sleep(self.rng.choice((0.0, 0.02, 0.2)))
        while self.held and self.rng.random() < 0.8:
            self.release()

    def _wait_for(self, count: int) -> None:
        """Wait in line."""
        wishes = {"ttl": self.rng.choice(TTLS), "cooldown": self.rng.choice(COOLDOWNS)}
        self.wait_in_line(count, timeout=self.rng.choice(TIMEOUTS), **wishes)

    def wait_in_line(self, count: int, *, ttl: float, **wishes: float) -> list[Any] | None:
        """Wait for ``count`` rows, and poll for all waiters of the process; returns None after a timeout."""
        may = ("claim", "give", "take back", "revive", "renew", "pass on", "release")
        operation = self.operation(f"wait for {count}", may, ttl=ttl)
        operation.serves, operation.asked, operation.rests = True, _asked, RESTS
        wishes["priority"] = self.rng.choice(PRIORITIES)
        leases = operation.run(lambda: Proxy.pool.acquire_many(count, ttl=ttl, **wishes), AcquireTimeout)
        if isinstance(leases, AcquireTimeout):
            return None
        if isinstance(leases, Exception) or len(leases) != count:
            verdict.blame(f"(6) {operation}: {leases!r}")
        verdict.served(operation, leases)
        self.keep_handles(leases, ttl)
        return list(leases)

    def adopt(self) -> None:
        pair, ttl = self.mail.pop(0), self.rng.choice(TTLS)
        operation = self.operation("adopt", ("adopt",), pair, ttl=ttl)
        lease = operation.run(lambda: Proxy.pool.adopt(*pair, ttl=ttl), LeaseLost)
        if isinstance(lease, LeaseLost):
            if self.ledger.is_live(pair, schedule.now_running().now):
                verdict.blame(f"(5) {operation} was told that it is lost, and it runs")
        elif not isinstance(lease, Exception):
            if not operation.was_live:
                verdict.blame(f"(5) {operation} took up what had been lost")
            self.ledger.grants[lease.pk, lease.fence].sent_by = operation.began_at
            self.keep_handles([lease], ttl)

    def renew(self) -> None:
        held = self.any_held()
        operation = self.operation("renew", ("renew",), held.pair, ttl=held.ttl)
        self.after_renewal(operation, held, operation.run(held.lease.renew, LeaseLost))

    def guard(self) -> None:
        held, rolls_back, writes_first = self.any_held(), self.rng.random() < 0.3, self.rng.random() < 0.3
        works_for = self.rng.choice((0, 0, 0.3, 1.5))

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

        operation = self.operation("guard", ("renew",), held.pair, ttl=held.ttl)
        operation.writes = True
        outcome = operation.run(work, LeaseLost, DatabaseError)
        self.after_renewal(operation, held, outcome)

    def ensure_held(self) -> None:
        held = self.any_held()
        operation = self.operation("ensure_held", (), held.pair)
        outcome = operation.run(held.lease.ensure_held, LeaseLost)
        if outcome is None and not self.ledger.is_live(held.pair, schedule.now_running().now):
            verdict.blame(f"(2) {operation} passed")
        if outcome is not None:
            self.after_renewal(operation, held, outcome)

    def release(self) -> None:
        held = self.any_held()
        cooldown = held.lease._terms.cooldown
        operation = self.operation("release", ("release", "pass on"), held.pair, cooldown=cooldown)
        self.after_ending(operation, held, "release", operation.run(held.lease.release, LeaseLost))

    def hand_over(self) -> None:
        held, ttl = self.any_held(), self.rng.choice(TTLS)
        heir = f"heir of {self.process.name}"
        operation = self.operation("hand over", ("hand over",), held.pair, ttl=ttl)
        operation.heir = heir
        fence = operation.run(lambda: held.lease.hand_over(heir, ttl=ttl), LeaseLost)
        if self.after_ending(operation, held, "hand over", fence) and not isinstance(fence, Exception):
            self.mail.append((held.pair[0], fence))

    def quarantine(self) -> None:
        held = self.rng.choice(self.resources())
        operation = self.operation("quarantine", ("park",), held.pair)
        outcome = operation.run(lambda: held.lease.quarantine("banned"), LeaseLost)
        self.after_ending(operation, held, "park", outcome)

    def fix(self) -> None:
        held = self.rng.choice(self.resources())
        operation = self.operation("fix", ("park", "claim", "give", "revive"), held.pair, ttl=held.ttl)
        outcome = operation.run(lambda: held.lease.fix("banned", timeout=0), LeaseLost, AcquireTimeout)
        if outcome is None:
            self.held.remove(held)
            verdict.granted(operation, [held.lease])
            self.keep_handles([held.lease], held.ttl)
        elif isinstance(outcome, AcquireTimeout) or operation.did("park"):
            self.held.remove(held)
        else:
            self.after_ending(operation, held, "park", outcome)

    def work(self) -> None:
        schedule.now_running().sleep(self.rng.choice((0.1, 0.5, 0.95, 1.05, 2.5)))

    def exit(self) -> None:
        """End normally: release everything in one statement, without a retry."""
        leases, pairs = keeper.leases(), tuple((held.lease.pk, held.lease.fence) for held in self.held)
        pairs = tuple(pair for pair in pairs if pair in {(lease.pk, lease.fence) for lease in leases})
        self.held = []
        if pairs:
            operation = self.operation("exit", ("release",), *pairs)
            connection = connections["default"]
            operation.run(lambda: verbs.release_all(connection, Proxy, pairs, 0.0), DatabaseError)


def _asked() -> dict[str, int]:
    """Return the ttl in milliseconds that each waiter of this process requests, by holder."""
    return {
        waiter.holder: round(waiter.request.terms.ttl * 1_000) for waiter in poller_on("default").turns.waiters
    }


def _write(pair: Pair) -> None:
    """Write to the fenced target, as a holder's work would."""
    with connections["default"].cursor() as cursor:
        cursor.execute("UPDATE target SET fence = %s, writes = writes + 1 WHERE pk = %s", [pair[1], pair[0]])
