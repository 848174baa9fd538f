"""The handle of a row that others may be waiting for: made, delivered to the caller, given back."""

import logging
import weakref
from asyncio import AbstractEventLoop
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from resourcepool.database.retry import retrying
from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.leases import verbs
from resourcepool.leases.lease import Lease
from resourcepool.leases.table import Model
from resourcepool.leases.terms import Grant
from resourcepool.waiting import handover
from resourcepool.waiting.assignment import assign_quietly
from resourcepool.waiting.models import selector_of
from resourcepool.waiting.request import Request, Source

Handle = TypeVar("Handle", bound=Lease)

logger = logging.getLogger(__name__)


class AwaitedLease(Lease):
    """A lease whose release gives the row straight to the first in line. See ``Lease``."""

    def load(self) -> None:
        """Read lazy values now."""

    @staticmethod
    def after_batch_release(using: str, model: Model, pks: Sequence[Any]) -> None:
        """Give free rows to the waiters."""
        assign_quietly(using, model, {selector_of(model, pk) for pk in pks})

    def _send_release(self, connection: BaseDatabaseWrapper) -> bool:
        if self.terms.cooldown:  # nobody may have it yet; it is given out after the cool-down
            return super()._send_release(connection)
        until = self.trust.until
        return release(connection, self.model, self.pk, self.fence, trusted_until=until)


def release(
    connection: BaseDatabaseWrapper, model: Model, pk: Any, fence: int, *, trusted_until: float
) -> bool:
    """Give a row up: straight to the first in line that it fits, otherwise it is free. False: it was lost before.

    Args:
        trusted_until: the time, by this process's clock, before which nobody else can have claimed it.

    Raises:
        DatabaseUnavailable: it is unknown whether it took effect.
    """
    if connection.in_atomic_block:
        # A ticket that stays locked until the commit would hold up its whole process.
        assign_free_rows = partial(assign_quietly, connection.alias, model, [selector_of(model, pk)])
        transaction.on_commit(assign_free_rows, using=connection.alias)
        return verbs.release(connection, model, pk, fence, 0.0, trusted_until=trusted_until)
    send = partial(handover.release, connection, model, pk, fence)
    settle = partial(handover.settle_release, connection, model, pk, fence, trusted_until)
    return retrying(connection, send, settle=settle)


def make_handles(source: Source, using: str, request: Request, grants: Sequence[Grant]) -> list[Any]:
    """Return the handles of these grants.

    If one cannot be made (no more threads, for example) or a signal interrupts this, all grants go back, and the error
    is raised.
    """
    leases: list[Lease] = []
    try:
        for grant in grants:
            leases.append(source.handle(using, grant, request))  # noqa: PERF401 (known one by one)
    except BaseException:
        release_quietly(leases)
        for grant in grants[len(leases) :]:
            give_back(source, using, grant)
        raise
    return leases


def give_back(source: Source, using: str, grant: Grant) -> None:
    """Free a granted row that has no handle, or give it to the next in line; if that fails, it expires."""
    try:
        release(connections[using], source.model, grant.pk, grant.fence, trusted_until=0.0)
    except DatabaseUnavailable as error:
        logger.warning("could not give back what nobody got; it lapses by itself: %s", error)
    except Exception:
        logger.exception("could not give back what nobody got; it lapses by itself")


def release_quietly(leases: Sequence[Lease] | None) -> None:
    """Give these back without raising."""
    for lease in leases or ():
        lease.stop_renewing()  # all of them first: an interrupted release of one must not keep the others
    for lease in leases or ():
        lease.release_quietly()


def load(leases: Sequence[AwaitedLease], loop: AbstractEventLoop) -> None:
    """Read the lazy values of these now, for a task of this loop: should that be closed, it never gets them."""
    for lease in leases:
        lease.loop = weakref.ref(loop)
        lease.load()


def delivered(leases: list[Handle]) -> list[Handle]:
    """Return these to the caller; from now on they are renewed until they are given back.

    The last step: if a signal comes before it, the handles are let go as soon as nothing refers to them (``Keeper``).
    """
    try:
        for lease in leases:
            lease.is_delivered = True
        return leases  # noqa: TRY300 (an interruption just here is caught, too)
    except BaseException:
        for lease in leases:
            lease.is_delivered = False
        raise
