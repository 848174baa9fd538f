"""Renews many leases of one model together: one statement, and what is known of each afterwards."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.clock import monotonic
from resourcepool.db.background import log_errors
from resourcepool.db.retry import retrying
from resourcepool.db.transactions import unlocked
from resourcepool.leases import verbs
from resourcepool.leases.models import Model
from resourcepool.leases.terms import Trust

if TYPE_CHECKING:
    from resourcepool.leases.lease import Lease


def renew_together(using: str, leases: Sequence["Lease"]) -> bool:
    """Renew leases of one model in one statement, each for its own ttl, and mark lost ones.

    Returns:
        False: some rows are locked by other transactions; their leases are left for the next renewal.

    Raises:
        DatabaseUnavailable: it is unknown which were renewed.
    """
    model, connection = leases[0].model, connections[using]
    held = [_Held(lease._trust, lease, lease.pk, lease.fence) for lease in leases]
    if len({grant.pk for grant in held}) < len(held):  # an older handle of the same row is among them
        held = _mark_lost(using, held)
    sent_at, renewed = _send(connection, model, held)
    complete = renewed is not None
    if renewed is None:  # a locked row must not cost this process all other leases
        free = unlocked(connection, model, [grant.pk for grant in held])
        held = [grant for grant in held if grant.pk in free]
        sent_at, renewed = _send(connection, model, held)
    if renewed is None:
        return False
    if renewed < len(_grants(held)):
        held = _mark_lost(using, held)
    if renewed != len(_grants(held)):
        return False  # it is unknown which were renewed
    for grant in held:
        grant.trust.confirm(sent_at)
    return complete


class _Held(NamedTuple):
    """One grant in a batch, even if ``fix()`` moves its handle to another row meanwhile."""

    trust: Trust  # read first: if ``fix()`` runs in between, the renewal confirms the old window
    lease: "Lease"
    pk: Any
    fence: int


def _mark_lost(using: str, held: list[_Held]) -> list[_Held]:
    """Mark leases whose fence changed as lost; return the rest."""
    if not held:
        return []
    model, connection, pks = held[0].lease.model, connections[using], [grant.pk for grant in held]
    live = retrying(connection, lambda: verbs.live_fences(connection, model, pks))
    for grant in held:
        if live.get(grant.pk) != grant.fence and grant.lease._is_renewed:
            lose(grant.lease, verbs.TAKEN, grant.trust)
    return [grant for grant in held if live.get(grant.pk) == grant.fence]


def lose(lease: "Lease", reason: str, trust: Trust) -> None:
    """Mark a lease as lost; log errors of the receivers."""
    with log_errors("could not report to every receiver that %s is lost", lease):
        lease._lose(reason, trust)


def _grants(held: list[_Held]) -> set[tuple[object, int]]:
    return {(grant.pk, grant.fence) for grant in held}


def _send(connection: BaseDatabaseWrapper, model: Model, held: list[_Held]) -> tuple[float, int | None]:
    sent_at, ttls = monotonic(), dict[tuple[Any, int], float]()
    for one in held:  # each handle of a grant trusts its own ttl, so the longest one is written
        grant = one.pk, one.fence
        ttls[grant] = max(one.trust.next_ttl(sent_at), ttls.get(grant, 0.0))
    if not ttls:
        return sent_at, 0
    return sent_at, verbs.renew_unless_locked(connection, model, list(ttls), list(ttls.values()))
