"""A pool: the rows of one model, each handed out to one holder at a time."""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import connections, router

from resourcepool import options
from resourcepool.conf import POOL_OPTIONS, pool_setting
from resourcepool.exceptions import BadOption, LeaseLost
from resourcepool.leases import verbs
from resourcepool.leases.clock import monotonic
from resourcepool.leases.models import AbstractLease
from resourcepool.leases.table import Model, refuse_inherited
from resourcepool.leases.verbs import Grant
from resourcepool.resources.desk import Desk
from resourcepool.resources.lease import ResourceLease
from resourcepool.resources.order import Order, Orders, check_option


class Pool:
    """Hands out the rows of a model; every resource model has one as ``Model.pool``.

    Options of ``acquire``, ``lease`` and ``acquire_many`` (times in seconds or timedelta):

    - ``timeout``: how long to wait until something suitable is free; default: RESOURCEPOOL["TIMEOUT"].
    - ``ttl``: how long the grant outlives a process that dies. A living one renews it by itself.
    - ``holder``: who has it, for people to read; default: host/pid/thread/number.
    - ``priority``: who is served first when several wait: the lowest number, then who came first.
    - ``strategy``: "spread" (longest idle first), "sticky" (the one I had last) or "random" (by weight).
    - ``cooldown``: how long it rests after the release.
    - ``max_hold``: it is not renewed beyond this.
    - ``on_lost``: called with the lease when it is lost, from a background thread.
    - ``allow_in_transaction``: claim inside the caller's open transaction; a rollback undoes it.
    - anything else is a selector: a field of the model with a value or a list of values, or ``tags``.

    All of them raise BadOption for a wrong option, ClaimInTransaction, NotMigrated, and (only when not
    waiting) DatabaseUnavailable.
    """

    def __init__(self, **declared: Any) -> None:
        for name, value in declared.items():
            if name not in POOL_OPTIONS:
                raise BadOption(name, value, f"Pool takes {', '.join(POOL_OPTIONS)}")
            check_option(name, value)
        self._declared = declared
        self._bound: dict[type, Pool] = {}
        self._model: Model | None = None
        self._history: tuple[object, bool] | None = None  # the settings it was read from, and what they said

    def __get__(self, instance: object, owner: type) -> "Pool":
        if self._model is not None:
            return self
        if owner not in self._bound:
            self._bound[owner] = bound = Pool(**self._declared)
            bound._model = owner
        return self._bound[owner]

    @cached_property
    def model(self) -> Model:
        """The model whose rows this pool hands out."""
        model: Any = self._model
        if not isinstance(model, type) or not issubclass(model, AbstractLease) or model._meta.abstract:
            raise BadOption("model", model, "a concrete Django model derived from AbstractResource")
        return model

    @property
    def using(self) -> str:
        """The database on which leases are decided: where the project's routers write this model."""
        return router.db_for_write(self.model)

    @property
    def keeps_history(self) -> bool:
        """Whether what happens to its resources is written down; asked for every lease, so what was read is kept."""
        chosen = getattr(settings, "RESOURCEPOOL", None)
        if self._history is None or self._history[0] is not chosen:
            self._history = chosen, pool_setting(self.model._meta.label, "history", self._declared) is True
        return self._history[1]

    @property
    def ttl(self) -> float:
        """For how many seconds a grant lasts, unless the caller says otherwise; raises BadOption."""
        return self._order(1, {}).terms.ttl

    @cached_property
    def _orders(self) -> Orders:
        refuse_inherited(self.model)
        return Orders(self.model, self._declared)

    @cached_property
    def _desk(self) -> Desk:
        return Desk(self)

    # Acquiring

    def acquire(self, *, wait: bool = True, **wishes: Any) -> ResourceLease | None:
        """Return the lease of one resource.

        Args:
            wait: False: return None at once when nothing is free.
            wishes: see the class.

        Raises:
            AcquireTimeout: nothing suitable came free in time.
        """
        leases = self._acquire(1, wait, wishes)
        return leases[0] if leases else None

    def acquire_many(self, count: int, *, wait: bool = True, **wishes: Any) -> list[ResourceLease] | None:
        """Return the leases of ``count`` resources, or of none: all or nothing. See ``acquire``."""
        return self._acquire(count, wait, wishes)

    @contextlib.contextmanager
    def lease(self, **wishes: Any) -> Iterator[ResourceLease]:
        """Hold one resource for a ``with`` block; raises LeaseLost at its end if it was lost meanwhile."""
        with self.obtain(self._order(1, wishes))[0] as lease:
            yield lease

    def adopt(self, pk: Any, fence: int, **wishes: Any) -> ResourceLease:
        """Take up a lease that ``hand_over`` passed to this process.

        Raises:
            LeaseLost: that grant is over.
        """
        asked = self._order(1, wishes)
        options.whole("fence", fence, least=1, most=2**63 - 1)
        pk = self._key(pk)
        self.refuse_open_transaction(asked)
        connection, sent_at = connections[self.using], monotonic()
        if not verbs.renew(connection, self.model, [(pk, fence)], asked.terms.ttl):
            raise LeaseLost(f"{self.model._meta.label} {pk} is not held under fence {fence} any more")
        return ResourceLease(self, self.using, Grant(pk, fence, sent_at), asked)

    # The same for asyncio

    async def aacquire(self, *, wait: bool = True, **wishes: Any) -> ResourceLease | None:
        """``acquire`` for asyncio; waiting occupies no thread."""
        leases = await self._aacquire(1, wait, wishes)
        return leases[0] if leases else None

    async def aacquire_many(
        self, count: int, *, wait: bool = True, **wishes: Any
    ) -> list[ResourceLease] | None:
        """``acquire_many`` for asyncio."""
        return await self._aacquire(count, wait, wishes)

    @contextlib.asynccontextmanager
    async def alease(self, **wishes: Any) -> AsyncIterator[ResourceLease]:
        """``lease`` for asyncio."""
        async with (await self.aobtain(self._order(1, wishes)))[0] as lease:
            yield lease

    # What handles and ``Resource`` need

    def _order(self, count: int, wishes: Mapping[str, Any]) -> Order:
        """Return the checked order for these options and selectors; raises BadOption."""
        return self._orders.order(count, wishes)

    def obtain(self, asked: Order, stop: Callable[[], bool] = lambda: False) -> list[ResourceLease]:
        """Return what was ordered, waiting for it up to its timeout or until ``stop()``; raises AcquireTimeout."""
        return self._desk.obtain(asked, stop)

    async def aobtain(self, asked: Order) -> list[ResourceLease]:
        """``obtain`` for asyncio."""
        return await self._desk.aobtain(asked)

    def refuse_open_transaction(self, asked: Order) -> None:
        """Raise ClaimInTransaction if ``asked`` could not be claimed now because a transaction is open."""
        self._desk.refuse_open_transaction(asked)

    def freed(self, lease: ResourceLease) -> None:
        """Note that ``lease`` was released here: its holder prefers it next time, and waiters look at once."""
        self._desk.freed(lease)

    def _acquire(self, count: int, wait: bool, wishes: Mapping[str, Any]) -> list[ResourceLease] | None:
        asked = self._order(count, wishes)
        return self._desk.obtain(asked) if wait else self._desk.try_now(asked)

    async def _aacquire(self, count: int, wait: bool, wishes: Mapping[str, Any]) -> list[ResourceLease] | None:
        asked = self._order(count, wishes)
        return await (self._desk.aobtain(asked) if wait else self._desk.atry_now(asked))

    def _key(self, pk: Any) -> Any:
        field: Any = self.model._meta.pk
        try:
            return field.to_python(pk)
        except ValidationError:
            raise BadOption("pk", pk, f"a primary key of {self.model._meta.label}") from None
