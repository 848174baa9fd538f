"""Delivers granted rows to the caller as handles; rows that cannot be delivered go back."""

import logging
from collections.abc import Sequence
from typing import Any, TypeVar

from django.db import connections

from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.leases.lease import Lease
from resourcepool.leases.terms import Grant
from resourcepool.waiting import handover
from resourcepool.waiting.request import Request, Source

Handle = TypeVar("Handle", bound=Lease)

logger = logging.getLogger(__name__)


def handles(source: Source, using: str, request: Request, grants: Sequence[Grant]) -> list[Any]:
    """Return the handles of these grants.

    If one cannot be made (no more threads, for example) or a signal interrupts this, all grants go back, and the error
    is raised.
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
    """Free a granted row that has no handle, or give it to the next in line; if that fails, it expires."""
    try:
        handover.release(connections[using], source.model, grant.pk, grant.fence, trusted_until=0.0)
    except DatabaseUnavailable as error:
        logger.warning("could not give back what nobody got; it lapses by itself: %s", error)
    except Exception:
        logger.exception("could not give back what nobody got; it lapses by itself")


def abandon(leases: Sequence[Lease] | None) -> None:
    """Give these back without raising."""
    for lease in leases or ():
        lease.let_go()  # all of them first: an interrupted release of one must not keep the others
    for lease in leases or ():
        lease.abandon()


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
