"""A caller's options and selectors, checked once and completed with the pool's defaults."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypedDict

from django.conf import settings

from resourcepool import options
from resourcepool.conf import POOL_OPTIONS, pool_setting
from resourcepool.exceptions import BadOption
from resourcepool.leases.lease import Lease
from resourcepool.leases.table import Model
from resourcepool.leases.terms import MAX_LENGTH, MIN_TTL, Terms
from resourcepool.resources import selectors
from resourcepool.resources.strategy import STRATEGIES
from resourcepool.waiting.request import Request

MOST_AT_ONCE = 1_000
REMEMBERED = 1_000  # checked requests per pool
PLAIN = (
    str,
    int,
    float,
    bool,
    timedelta,
    type(None),
)  # options and selectors that can be compared by value
PRIORITIES = (-1_000_000, 1_000_000)


class Options(TypedDict, total=False):
    """The options of ``acquire`` and similar methods; times in seconds or timedelta, None: the pool's default."""

    timeout: object
    ttl: object
    holder: str | None
    priority: int
    strategy: str | None
    cooldown: object
    max_hold: object
    on_lost: Callable[[Lease], None] | None
    allow_in_transaction: bool


# Options of acquire(): no field of these names can be a selector.
RESERVED = frozenset({*Options.__annotations__, "wait", "count", "tag"})


class Requests:
    """Checks the requests to one pool. Most callers repeat the same request, so checked ones are cached."""

    def __init__(self, model: Model, declared: Mapping[str, Any]) -> None:
        self._model, self._declared = model, declared
        self._checked: dict[Any, Request] = {}
        self._settings: object = None

    def request(self, count: int, wishes: Mapping[str, Any]) -> Request:
        """Return the checked request for these options and selectors; raises BadOption, see ``request``."""
        if self._settings is not (chosen := getattr(settings, "RESOURCEPOOL", None)):
            self._settings, self._checked = chosen, {}
        checked = self._checked  # of these settings: another thread may see others before this one is done
        # With the types, because 1 == True.
        key = (type(count), count, *wishes.items(), *map(type, wishes.values()))
        try:
            known = checked.get(key)
        except TypeError:  # a list, for example
            known = None
        return self._check(count, wishes, key, checked) if known is None else known

    def _check(self, count: int, wishes: Mapping[str, Any], key: Any, checked: dict[Any, Request]) -> Request:
        fresh = request(self._model, self._declared, count, wishes)
        # Names are mostly used once; and mutable values, or values with their own equality, are checked every time.
        if fresh.terms.holder_is_unique and all(type(value) in PLAIN for value in wishes.values()):
            if len(checked) >= REMEMBERED:
                checked.clear()
            checked[key] = fresh
        return fresh


def request(model: Model, declared: Mapping[str, Any], count: int, wishes: Mapping[str, Any]) -> Request:
    """Check ``wishes`` (options and selectors as the caller wrote them).

    Args:
        declared: the options of the model's own ``Pool(..)``.

    Raises:
        BadOption: names the first wrong option or selector, its value, and what is allowed.
    """
    asked = {name: wishes[name] for name in Options.__annotations__ if name in wishes}
    others = {name: value for name, value in wishes.items() if name not in asked}
    times = checked_defaults(model, declared, asked)
    holder = asked.get("holder")
    on_lost = asked.get("on_lost")
    if on_lost is not None and not callable(on_lost):
        raise BadOption("on_lost", on_lost, "a function that takes the lease")
    ttl = times["ttl"] if times["max_hold"] is None else min(times["ttl"], times["max_hold"])
    return Request(
        count=options.whole("count", count, least=1, most=MOST_AT_ONCE),
        timeout=times["timeout"],
        priority=options.whole("priority", asked.get("priority", 0), least=PRIORITIES[0], most=PRIORITIES[1]),
        strategy=times["strategy"],
        selector=selectors.canonical(model, others),
        terms=Terms(
            ttl=ttl,
            holder="" if holder is None else options.text("holder", holder, most=MAX_LENGTH),
            holder_is_unique=holder is None,
            cooldown=times["cooldown"],
            max_hold=times["max_hold"],
            leak_after=times["leak_after"],
            on_lost=on_lost,
            is_recorded=pool_setting(model._meta.label, "history", declared) is True,
        ),
        allow_in_transaction=bool(asked.get("allow_in_transaction", False)),
    )


def checked_defaults(model: Model, declared: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return ttl, timeout, cooldown, max_hold (seconds) and strategy: as requested, or from the pool's settings."""
    chosen: dict[str, Any] = {}
    for name in POOL_OPTIONS:
        value = asked.get(name)
        if value is None:
            value = pool_setting(model._meta.label, name, declared)
        chosen[name] = check_option(name, value)
    return chosen


def check_option(name: str, value: object) -> object:
    """Return one of a pool's options in its canonical form; raises BadOption."""
    if name in ("max_hold", "leak_after") and value is None:
        return None
    if name == "history":
        return options.flag(name, value)
    if name == "strategy":
        return options.one_of(name, value, STRATEGIES)
    return options.seconds(name, value, least=MIN_TTL if name in ("ttl", "max_hold") else 0.0)
