"""The options of the methods that lease resources: declared with types and defaults, and checked.

Type checkers, editors and ``help()`` see them as parameters of the methods.
"""

import inspect
from collections.abc import Callable, Collection, Mapping
from datetime import date, time
from decimal import Decimal
from typing import Any, Concatenate, Literal, ParamSpec, TypedDict, TypeVar
from uuid import UUID

from django.db import models

from resourcepool import options
from resourcepool.conf import POOL_OPTIONS, pool_setting
from resourcepool.leases.models import Model
from resourcepool.leases.terms import MAX_LENGTH, MIN_TTL, Request, Terms
from resourcepool.options import Seconds
from resourcepool.resources import selectors
from resourcepool.resources.lease import ResourceLease
from resourcepool.resources.source import STRATEGIES, Strategy

MAX_COUNT = 1_000
PRIORITIES = (-1_000_000, 1_000_000)

P = ParamSpec("P")
Result = TypeVar("Result")
Self = TypeVar("Self")

# The value of a selector. Numbers only in a collection, port=[80], so that type checkers find timout=3.
Selector = str | bool | date | time | Decimal | UUID | models.Model | Collection[object] | None
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
    parameters: Callable[P, None],
) -> Callable[[Callable[Concatenate[Self, ...], Result]], Callable[Concatenate[Self, P], Result]]:
    """Return a decorator that gives a method these parameters, for type checkers and ``help()``."""
    return _with_parameters(parameters)


def takes_count(
    parameters: Callable[P, None],
) -> Callable[[Callable[Concatenate[Self, int, ...], Result]], Callable[Concatenate[Self, int, P], Result]]:
    """``takes``, for a method whose first parameter is ``count``."""
    return _with_parameters(parameters)


def _with_parameters(parameters: Callable[..., None]) -> Callable[[Any], Any]:
    def decorate(method: Any) -> Any:
        own = inspect.signature(method)
        leading = [one for one in own.parameters.values() if one.name in ("self", "count")]
        shown = [*leading, *inspect.signature(parameters).parameters.values()]
        method.__signature__ = own.replace(parameters=shown)
        return method

    return decorate


OPTIONS = tuple(lease_options.__kwdefaults__ or ())
# Arguments of acquire(): a field with one of these names cannot be a selector.
RESERVED_NAMES = frozenset({*OPTIONS, "wait", "count", "tag"})


def check_request(
    model: Model, declared: Mapping[str, Any], count: int, criteria: Mapping[str, Any]
) -> Request:
    """Return the validated request for these options and selectors, with the defaults of the pool.

    Args:
        declared: the options of the model's own ``Pool(..)``.
        criteria: options and selectors as the caller wrote them.

    Raises:
        BadOption: names the first wrong option or selector, its value, and the allowed values.
    """
    given = {name: criteria[name] for name in OPTIONS if name in criteria}
    fields = {name: value for name, value in criteria.items() if name not in given}
    pool_options: dict[str, Any] = {}
    for name in POOL_OPTIONS:
        value = given.get(name)
        value = pool_setting(model._meta.label, name, declared) if value is None else value
        pool_options[name] = check_option(name, value)
    holder, on_lost = given.get("holder"), given.get("on_lost")
    if on_lost is not None:
        options.plain_function("on_lost", on_lost, "a plain function that takes the lease")
    ttl, max_hold = pool_options["ttl"], pool_options["max_hold"]
    least, most = PRIORITIES
    return Request(
        count=options.whole("count", count, least=1, most=MAX_COUNT),
        timeout=pool_options["timeout"],
        priority=options.whole("priority", given.get("priority", 0), least=least, most=most),
        strategy=pool_options["strategy"],
        selector=selectors.canonical_selector(model, fields, RESERVED_NAMES),
        terms=Terms(
            ttl=ttl if max_hold is None else min(ttl, max_hold),
            holder="" if holder is None else options.text("holder", holder, most=MAX_LENGTH),
            holder_is_unique=holder is None,
            cooldown=pool_options["cooldown"],
            max_hold=max_hold,
            leak_after=pool_options["leak_after"],
            on_lost=on_lost,
            is_recorded=pool_options["history"],
        ),
        allow_in_transaction=options.flag("allow_in_transaction", given.get("allow_in_transaction", False)),
    )


def check_option(name: str, value: object) -> object:
    """Return one of a pool's options in its canonical form; raises BadOption."""
    if name in ("max_hold", "leak_after") and value is None:
        return None
    if name == "history":
        return options.flag(name, value)
    if name == "strategy":
        return options.one_of(name, value, STRATEGIES)
    return options.seconds(name, value, least=MIN_TTL if name in ("ttl", "max_hold") else 0.0)
