"""Changes by operators, and calls that must be refused."""

from typing import Any

from django.db import DatabaseError, transaction

from resourcepool.exceptions import ClaimInTransaction, GuardOutsideTransaction, LeaseLost, LeaseReleased
from resourcepool.models import Proxy
from tests.simulation import verdict
from tests.simulation.participant import Participant


class OperatorProcess(Participant):
    """A process that also acts for operators, and makes mistakes."""

    _copy: Any = None

    def operate(self) -> None:
        """An operator in the admin."""
        rows = Proxy.objects.filter(pk=self.rng.choice(list(self.ledger.rows)))
        if self.rng.random() < 0.4:
            duration = self.rng.choice((None, 0.5))
            operation = self.operation("take out", ("take out",))
            operation.run(lambda: rows.drain("upkeep", duration=duration), DatabaseError)
        else:
            operation = self.operation("return to service", ("return", "give"))
            operation.run(rows.return_to_service, DatabaseError)

    def save(self) -> None:
        """Save a stale instance."""
        operation = self.operation("save", ())
        if self._copy is None:
            pk = self.rng.choice(list(self.ledger.rows))
            operation.run(lambda: setattr(self, "_copy", Proxy.objects.get(pk=pk)), DatabaseError)
        else:
            self._copy.notes += "."
            operation.run(self._copy.save, DatabaseError)
            self._copy = None

    def misuse(self) -> None:
        """Calls that must be refused: claims inside a transaction, ``guard`` outside of one."""

        def claim() -> None:
            with transaction.atomic():
                Proxy.pool.acquire(wait=False)

        refused = self.operation("acquire in a transaction", ())
        outcome = refused.run(claim, ClaimInTransaction, DatabaseError)
        if not isinstance(outcome, ClaimInTransaction) and not refused.failures:
            verdict.blame(f"(7) {refused}: {outcome!r}")
        if self.held:
            held = self.any_held()
            operation = self.operation("guard outside a transaction", (), held.pair)
            outcome = operation.run(lambda: held.lease.guard().__enter__(), GuardOutsideTransaction, LeaseLost)
            if isinstance(outcome, LeaseLost):
                self.after_renewal(operation, held, outcome)
            elif not isinstance(outcome, GuardOutsideTransaction):
                verdict.blame(f"(7) {operation}: {outcome!r}")

    def use_again(self) -> None:
        lease = self.given_back.pop()
        operation = self.operation("use again", ())
        use = self.rng.choice((lease.renew, lease.release, lease.ensure_held))
        outcome = operation.run(use, LeaseReleased)
        if not isinstance(outcome, LeaseReleased):
            verdict.blame(f"(6) a lease that was given back could be used: {outcome!r}")
