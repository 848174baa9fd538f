"""A caller's options and selectors, checked once and completed with the pool's defaults."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings

from resourcepool import options
from resourcepool.conf import POOL_OPTIONS, pool_setting
from resourcepool.leases.table import Model
from resourcepool.leases.terms import MAX_LENGTH, MIN_TTL, Terms
from resourcepool.resources import selectors
from resourcepool.resources.strategy import STRATEGIES
from resourcepool.waiting.request import Request

MAX_COUNT = 1_000
MAX_CACHED = 1_000  # checked requests per pool
PLAIN = (str, int, float, bool, timedelta, type(None))  # options and selectors that can be compared by value
PRIORITIES = (-1_000_000, 1_000_000)
OPTIONS = (
    *("timeout", "ttl", "holder", "priority", "strategy", "cooldown", "max_hold"),
    *("on_lost", "allow_in_transaction"),
)
# Options of acquire(): no field of these names can be a selector.
RESERVED_NAMES = frozenset({*OPTIONS, "wait", "count", "tag"})


class RequestBuilder:
    """Checks the requests to one pool. Most callers repeat the same request, so checked ones are cached.

    ``declared`` are the options of the model's own ``Pool(..)``.
    """

    def __init__(self, model: Model, declared: Mapping[str, Any]) -> None:
        self._model, self._declared = model, declared
        self._checked: dict[Any, Request] = {}
        self._settings: object = None

    def request(self, count: int, criteria: Mapping[str, Any]) -> Request:
        """Return the checked request for these options and selectors.

        Args:
            wishes: options and selectors as the caller wrote them.

        Raises:
            BadOption: names the first wrong option or selector, its value, and what is allowed.
        """
        # No local variable may refer to the settings: error reports show these, and the settings have keys.
        if self._settings is not getattr(settings, "RESOURCEPOOL", None):
            self._settings, self._checked = getattr(settings, "RESOURCEPOOL", None), {}
        checked = self._checked  # of these settings: another thread may see others before this one is done
        # With the types, because 1 == True.
        key = (type(count), count, *criteria.items(), *map(type, criteria.values()))
        try:
            known = checked.get(key)
        except TypeError:  # a list, for example
            known = None
        if known is not None:
            return known
        fresh = self._check(count, criteria)
        # Names are mostly used once; and mutable values, or values with their own equality, are checked every time.
        if fresh.terms.holder_is_unique and all(type(value) in PLAIN for value in criteria.values()):
            if len(checked) >= MAX_CACHED:
                checked.clear()
            checked[key] = fresh
        return fresh

    def _check(self, count: int, criteria: Mapping[str, Any]) -> Request:
        asked = {name: criteria[name] for name in OPTIONS if name in criteria}
        others = {name: value for name, value in criteria.items() if name not in asked}
        chosen = {name: self._chosen(name, asked.get(name)) for name in POOL_OPTIONS}
        holder, on_lost = asked.get("holder"), asked.get("on_lost")
        if on_lost is not None:
            options.plain_function("on_lost", on_lost, "a plain function that takes the lease")
        ttl, max_hold = chosen["ttl"], chosen["max_hold"]
        least, most = PRIORITIES
        return Request(
            count=options.whole("count", count, least=1, most=MAX_COUNT),
            timeout=chosen["timeout"],
            priority=options.whole("priority", asked.get("priority", 0), least=least, most=most),
            strategy=chosen["strategy"],
            selector=selectors.canonical_selector(self._model, others),
            terms=Terms(
                ttl=ttl if max_hold is None else min(ttl, max_hold),
                holder="" if holder is None else options.text("holder", holder, most=MAX_LENGTH),
                holder_is_unique=holder is None,
                cooldown=chosen["cooldown"],
                max_hold=max_hold,
                leak_after=chosen["leak_after"],
                on_lost=on_lost,
                is_recorded=chosen["history"],
            ),
            allow_in_transaction=bool(asked.get("allow_in_transaction", False)),
        )

    def _chosen(self, name: str, asked: object) -> Any:
        """Return an option as requested, or from the pool's settings."""
        value = pool_setting(self._model._meta.label, name, self._declared) if asked is None else asked
        return check_option(name, value)


def check_option(name: str, value: object) -> object:
    """Return one of a pool's options in its canonical form; raises BadOption."""
    if name in ("max_hold", "leak_after") and value is None:
        return None
    if name == "history":
        return options.flag(name, value)
    if name == "strategy":
        return options.one_of(name, value, STRATEGIES)
    return options.seconds(name, value, least=MIN_TTL if name in ("ttl", "max_hold") else 0.0)
