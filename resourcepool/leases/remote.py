"""Leases of programs outside this project, which have a token instead of a handle.

The token is signed, so it cannot be forged; any program that has it acts for the holder.
"""

import os
import time
from dataclasses import dataclass
from typing import Any

from django.core import signing
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.clock import monotonic
from resourcepool.db.retry import retrying
from resourcepool.db.timeouts import statement_timeout
from resourcepool.events import sentence_for
from resourcepool.exceptions import BadOption, DatabaseUnavailable, Hidden, LeaseLost
from resourcepool.leases import shutdown, verbs
from resourcepool.leases.keeper import keeper
from resourcepool.leases.lease import Lease
from resourcepool.leases.terms import Ending, Grant, Trust
from resourcepool.leases.verbs import TAKEN
from resourcepool.signals import EventKind

SALT = "resourcepool.lease"
MAX_TOKEN_LENGTH = 10_000  # names of 200 characters, escaped with 12 letters each, plus a third for base64


@dataclass(frozen=True)
class Token:
    """The content of a token: a grant and its options.

    Attributes:
        model: "app.model".
        pk: the primary key, as text.
        granted_at: seconds since 1970, by the granting web server's clock: for ``max_hold`` and the history.
        ttl, cooldown, max_hold: the options it was acquired with, in seconds.
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
        """Return the token as text, signed with SECRET_KEY."""
        return signing.dumps(list(vars(self).values()), salt=SALT)

    @classmethod
    def read(cls, text: object) -> "Token":
        """Return the token in a ``signed`` text; raises BadOption, without the text."""
        try:
            if isinstance(text, str) and len(text) <= MAX_TOKEN_LENGTH:
                return cls(*signing.loads(text, salt=SALT))
        except (signing.BadSignature, TypeError, ValueError):  # ValueError: half a surrogate pair
            pass
        raise BadOption("lease", Hidden(), "the text under that name in the answer to acquire")

    def grant(self, pk: Any) -> Grant:
        """Return the grant of this token; ``pk``: its primary key as the model's type."""
        return Grant(pk, self.fence, self.holder, monotonic() - max(0.0, time.time() - self.granted_at))


def detach(lease: Lease) -> str:
    """Detach a lease that this process has just acquired for another program; return its token.

    This process no longer renews or releases it, not even at exit. Do not use the handle afterwards.

    Raises:
        DatabaseUnavailable: this process is exiting, and may be releasing it.
    """
    keeper.remove(lease)
    if shutdown.has_begun():
        lease._release_quietly()
        raise DatabaseUnavailable("this web server is shutting down; send the request again")
    granted_at, terms = time.time() - (monotonic() - lease._trust.granted_at), lease._terms
    spans = terms.ttl, terms.cooldown, terms.max_hold
    which = lease.model._meta.label_lower, str(lease.pk), lease.fence, lease.holder
    return Token(*which, granted_at, *spans).signed()


class Remote(Lease):
    """Mixin for a lease of another program, for one request.

    No thread watches it here, so the row alone decides whether it is still held.
    """

    def ensure_held(self) -> None:
        """Raise LeaseLost if it was held for ``max_hold`` seconds, or has ended in this call."""
        now = monotonic()
        if not self._state.has_ended and self._trust.next_ttl(now) <= 0.0:
            self._lose(self._trust.end_reason(now))
        self._state.raise_if_ended(self)

    def _lose(self, reason: str, trust: Trust | None = None) -> None:
        """Mark it as lost for this request, without an event: the program may have released it before."""
        why = f"it was released before, {reason}" if reason == TAKEN else reason
        self._state.end(lost=LeaseLost(f"{self} of {self.holder} has ended: {why}"))

    def _give_up(self, *how: Any) -> None:
        """Refuse an expired lease first: the statement that ends a lease matches only its fence, even after the ttl."""
        row = verbs.rows_of(self._connection, self.model).filter(pk=self.pk, fence=self.fence)
        with statement_timeout():
            if retrying(self._connection, row.expired().exists):
                self._lose(sentence_for("not_renewed_in_ttl", seconds=self._terms.ttl))
                self._state.raise_if_ended(self)
        super()._give_up(*how)

    def _take(self, grant: Grant, connection: BaseDatabaseWrapper) -> None:
        self.pk, self.fence, self.holder = grant.pk, grant.fence, grant.holder
        self._transaction = None
        self._pid = os.getpid()
        self._trust = Trust(self._terms, grant.sent_at, is_proven=True)
        self._state = Ending()

    def _emit(self, kind: EventKind, connection: BaseDatabaseWrapper, reason: str = "") -> None:
        if kind is not EventKind.ACQUIRED:  # emitted when it was granted
            super()._emit(kind, connection, reason)
