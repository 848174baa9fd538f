"""The parameters of the methods that lease resources: each option is declared here, with its type and default.

Type checkers, editors and ``help()`` see them as parameters of the methods; ``RequestBuilder`` checks the values.
"""

import inspect
from collections.abc import Callable, Collection
from datetime import date, time
from decimal import Decimal
from typing import Any, Concatenate, Literal, ParamSpec, TypedDict, TypeVar
from uuid import UUID

from django.db.models import Model

from resourcepool.options import Seconds
from resourcepool.resources.lease import ResourceLease
from resourcepool.resources.strategy import Strategy

P = ParamSpec("P")
Result = TypeVar("Result")
Self = TypeVar("Self")

# The value of a selector. Numbers only in a collection, port=[80], so that type checkers find timout=3.
Selector = str | bool | date | time | Decimal | UUID | Model | Collection[object] | None
OnLost = Callable[[ResourceLease[Any]], object] | None


class PoolOptions(TypedDict, total=False):
    """The defaults of one pool, as ``Pool(ttl=30)``; others come from the settings."""

    ttl: Seconds
    timeout: Seconds
    cooldown: Seconds
    max_hold: Seconds | None
    strategy: Strategy
    history: bool
    leak_after: Seconds | None


def lease_options(
    *,
    timeout: Seconds | None = None,
    ttl: Seconds | None = None,
    holder: str | None = None,
    priority: int = 0,
    strategy: Strategy | None = None,
    cooldown: Seconds | None = None,
    max_hold: Seconds | None = None,
    on_lost: OnLost = None,
    allow_in_transaction: bool = False,
    **fields: Selector,
) -> None:
    """The parameters of ``lease``; see ``acquire`` for their meaning."""


def wait_options(
    *,
    wait: Literal[True] = True,
    timeout: Seconds | None = None,
    ttl: Seconds | None = None,
    holder: str | None = None,
    priority: int = 0,
    strategy: Strategy | None = None,
    cooldown: Seconds | None = None,
    max_hold: Seconds | None = None,
    on_lost: OnLost = None,
    allow_in_transaction: bool = False,
    **fields: Selector,
) -> None:
    """The parameters of a call of ``acquire`` that cannot return None."""


def acquire_options(
    *,
    wait: bool = True,
    timeout: Seconds | None = None,
    ttl: Seconds | None = None,
    holder: str | None = None,
    priority: int = 0,
    strategy: Strategy | None = None,
    cooldown: Seconds | None = None,
    max_hold: Seconds | None = None,
    on_lost: OnLost = None,
    allow_in_transaction: bool = False,
    **fields: Selector,
) -> None:
    """The parameters of ``acquire``."""


def adopt_options(
    pk: object,
    fence: int,
    *,
    ttl: Seconds | None = None,
    holder: str | None = None,
    cooldown: Seconds | None = None,
    max_hold: Seconds | None = None,
    on_lost: OnLost = None,
    allow_in_transaction: bool = False,
) -> None:
    """The parameters of ``adopt``."""


def takes(
    options: Callable[P, None],
) -> Callable[[Callable[Concatenate[Self, ...], Result]], Callable[Concatenate[Self, P], Result]]:
    """Return a decorator that gives a method the parameters of ``options``, for type checkers and ``help()``."""
    return _with_parameters(options)


def takes_count(
    options: Callable[P, None],
) -> Callable[[Callable[Concatenate[Self, int, ...], Result]], Callable[Concatenate[Self, int, P], Result]]:
    """``takes``, for a method whose first parameter is ``count``."""
    return _with_parameters(options)


def _with_parameters(options: Callable[..., None]) -> Callable[[Any], Any]:
    def decorate(method: Any) -> Any:
        own = inspect.signature(method)
        leading = [one for one in own.parameters.values() if one.name in ("self", "count")]
        shown = [*leading, *inspect.signature(options).parameters.values()]
        method.__signature__ = own.replace(parameters=shown)
        return method

    return decorate
