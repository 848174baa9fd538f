"""Brings what was granted to whoever asked for it; what cannot be brought goes back."""

import logging
from collections.abc import Sequence
from typing import Any, TypeVar

from django.db import connections

from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.leases.lease import Lease
from resourcepool.leases.verbs import Grant
from resourcepool.waiting import handover
from resourcepool.waiting.request import Request, Source

Handle = TypeVar("Handle", bound=Lease)

logger = logging.getLogger(__name__)


def handles(source: Source, using: str, request: Request, grants: Sequence[Grant]) -> list[Any]:
    """Return the handles of what was granted.

    If one cannot be made (no more threads, for example) or a signal interrupts that, all of it goes back, and that is
    raised.
    """
    leases: list[Lease] = []
    try:
        for grant in grants:
            leases.append(source.handle(using, grant, request))  # noqa: PERF401 (known one by one)
    except BaseException:
        abandon(leases)
        for grant in grants[len(leases) :]:
            give_back(source, using, grant)
        raise
    return leases


def give_back(source: Source, using: str, grant: Grant) -> None:
    """Free a row that was granted and has no handle, or give it to the next in line; it lapses if that fails."""
    try:
        handover.release(connections[using], source.model, grant.pk, grant.fence, trusted_until=0.0)
    except DatabaseUnavailable as error:
        logger.warning("could not give back what nobody got; it lapses by itself: %s", error)
    except Exception:
        logger.exception("could not give back what nobody got; it lapses by itself")


def abandon(leases: Sequence[Lease] | None) -> None:
    """Give these back without a word."""
    for lease in leases or ():
        lease.let_go()  # all of them first: what interrupts the release of one does not keep the others
    for lease in leases or ():
        lease.abandon()


def delivered(leases: list[Handle]) -> list[Handle]:
    """Return these to whoever asked for them; from now on they are renewed until they are given back.

    The last step: what a signal interrupts before that is let go as soon as nobody refers to it (``Keeper``).
    """
    try:
        for lease in leases:
            lease.is_delivered = True
        return leases  # noqa: TRY300 (an interruption just here is caught, too)
    except BaseException:
        for lease in leases:
            lease.is_delivered = False
        raise
