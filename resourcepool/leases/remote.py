"""Leases of programs that are no processes of this project: such a program has a token in place of a handle.

Peers: Boskos and lockable-resources lease over HTTP. The token is signed, so it cannot be made up; whoever has it acts
for the holder.
"""

import os
import time
from dataclasses import dataclass
from typing import Any

from django.core import signing
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.database.clock import monotonic
from resourcepool.database.retry import retrying
from resourcepool.database.timeouts import statement_timeout
from resourcepool.events import sentence_for
from resourcepool.exceptions import BadOption, DatabaseUnavailable, Hidden, LeaseLost
from resourcepool.leases import shutdown, verbs
from resourcepool.leases.keeper import keeper
from resourcepool.leases.lease import Lease
from resourcepool.leases.terms import Ending, Grant, Trust
from resourcepool.leases.verbs import TAKEN
from resourcepool.signals import EventKind

SALT = "resourcepool.lease"
MOST_LETTERS = 10_000  # of a token: names of 200 characters take 12 letters each, and a third more


@dataclass(frozen=True)
class Token:
    """What a token says of a grant.

    Attributes:
        model: "app.model".
        pk: the primary key, as text.
        granted_at: seconds since 1970, by the clock of the server that granted it: for ``max_hold`` and the history.
        ttl, cooldown, max_hold: as it was acquired, in seconds.
    """

    model: str
    pk: str
    fence: int
    holder: str
    granted_at: float
    ttl: float
    cooldown: float
    max_hold: float | None

    def signed(self) -> str:
        """Return it as text, signed with SECRET_KEY."""
        return signing.dumps(list(vars(self).values()), salt=SALT)

    @classmethod
    def read(cls, text: object) -> "Token":
        """Return what a text says that ``signed`` has made; raises BadOption, without the text."""
        try:
            if isinstance(text, str) and len(text) <= MOST_LETTERS:
                return cls(*signing.loads(text, salt=SALT))
        except (signing.BadSignature, TypeError, ValueError):  # ValueError: half a surrogate pair
            pass
        raise BadOption("lease", Hidden(), "the text under that name in the answer to acquire")

    def grant(self, pk: Any) -> Grant:
        """Return the grant that it is about; ``pk``: its primary key."""
        return Grant(pk, self.fence, self.holder, monotonic() - max(0.0, time.time() - self.granted_at))


def detach(lease: Lease) -> str:
    """Detach a lease that this process has just got, for a program elsewhere; return its token.

    From now on nothing here renews or releases it, not at the end of this process either. The handle is of no use any
    more.

    Raises:
        DatabaseUnavailable: this process is ending, in another thread, which may release it at this moment.
    """
    keeper.remove(lease)
    if shutdown.has_begun():
        lease.release_quietly()
        raise DatabaseUnavailable("this web server is ending: ask another")
    granted_at, terms = time.time() - (monotonic() - lease.trust.granted_at), lease.terms
    spans = terms.ttl, terms.cooldown, terms.max_hold
    which = lease.model._meta.label_lower, str(lease.pk), lease.fence, lease.holder
    return Token(*which, granted_at, *spans).signed()


class Remote(Lease):
    """A lease of a program elsewhere, for one call: mixed into the kind of lease that it is.

    Nothing here watches it, so whether it is still held is decided by the row alone.
    """

    def ensure_held(self) -> None:
        """Raise LeaseLost if it was held for ``max_hold`` seconds, or has ended in this call."""
        now = monotonic()
        if not self._state.has_ended and self.trust.next_ttl(now) <= 0.0:
            self.lose(self.trust.why_over(now))
        self._state.raise_if_ended(self)

    def lose(self, reason: str, trust: Trust | None = None) -> None:
        """Note the loss, for this call alone: the program may have released it before, so nobody else is told."""
        why = f"it was released before, {reason}" if reason == TAKEN else reason
        self._state.end(lost=LeaseLost(f"{self} of {self.holder} is over: {why}"))

    def _give_up(self, *how: Any) -> None:
        """Refuse one that has run out: the statement that ends a lease matches its fence alone, also after its ttl."""
        mine = verbs.rows_of(self._connection, self.model).filter(pk=self.pk, fence=self.fence)
        with statement_timeout():
            if retrying(self._connection, mine.expired().exists):
                self.lose(sentence_for("not_renewed_in_ttl", seconds=self.terms.ttl))
                self._state.raise_if_ended(self)
        super()._give_up(*how)

    def _take(self, grant: Grant, connection: BaseDatabaseWrapper) -> None:
        self.pk, self.fence, self.holder = grant.pk, grant.fence, grant.holder
        self._transaction = None
        self._pid = os.getpid()
        self.trust = Trust(self.terms, grant.sent_at, is_proven=True)
        self._state = Ending()

    def _emit(self, what: EventKind, connection: BaseDatabaseWrapper, reason: str = "") -> None:
        if what is not EventKind.ACQUIRED:  # it was told of when it was granted
            super()._emit(what, connection, reason)
