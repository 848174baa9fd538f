"""Validates options and selectors of callers and adds the defaults of the pool."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings

from resourcepool import options
from resourcepool.conf import POOL_OPTIONS, pool_setting, refuse_unknown_settings
from resourcepool.leases.request import Request
from resourcepool.leases.table import Model
from resourcepool.leases.terms import MAX_LENGTH, MIN_TTL, Terms
from resourcepool.resources import selectors
from resourcepool.resources.signatures import lease_options
from resourcepool.resources.strategy import STRATEGIES

MAX_COUNT = 1_000
MAX_CACHED = 1_000  # requests per pool
CACHEABLE = (str, int, float, bool, timedelta, type(None))  # types compared by value
PRIORITIES = (-1_000_000, 1_000_000)
OPTIONS = tuple(lease_options.__kwdefaults__ or ())
# Arguments of acquire(): a field with one of these names cannot be a selector.
RESERVED_NAMES = frozenset({*OPTIONS, "wait", "count", "tag"})


class RequestBuilder:
    """Builds the requests to one pool. They are cached, because most callers repeat the same request.

    Args:
        declared: the options of the model's own ``Pool(..)``.
    """

    def __init__(self, model: Model, declared: Mapping[str, Any]) -> None:
        self._model, self._declared = model, declared
        self._cache: dict[Any, Request] = {}
        self._settings: object = None

    def request(self, count: int, criteria: Mapping[str, Any]) -> Request:
        """Return the validated request for these options and selectors.

        Args:
            criteria: options and selectors as the caller wrote them.

        Raises:
            BadOption: names the first wrong option or selector, its value, and the allowed values.
        """
        # No local variable may refer to the settings: error reports show these, and the settings have keys.
        if self._settings is not getattr(settings, "RESOURCEPOOL", None):
            refuse_unknown_settings(self._model._meta.label)
            self._settings, self._cache = getattr(settings, "RESOURCEPOOL", None), {}
        cache = self._cache  # of these settings; another thread may replace it meanwhile
        # The types are part of the key, because 1 == True.
        key = (type(count), count, *criteria.items(), *map(type, criteria.values()))
        try:
            cached = cache.get(key)
        except TypeError:  # unhashable, such as a list
            cached = None
        if cached is not None:
            return cached
        request = self._check(count, criteria)
        # Not with a holder name (mostly used once), nor with mutable values or values with their own equality.
        if request.terms.holder_is_unique and all(type(value) in CACHEABLE for value in criteria.values()):
            if len(cache) >= MAX_CACHED:
                cache.clear()
            cache[key] = request
        return request

    def _check(self, count: int, criteria: Mapping[str, Any]) -> Request:
        given = {name: criteria[name] for name in OPTIONS if name in criteria}
        fields = {name: value for name, value in criteria.items() if name not in given}
        pool_options = {name: self._pool_option(name, given.get(name)) for name in POOL_OPTIONS}
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
            selector=selectors.canonical_selector(self._model, fields, RESERVED_NAMES),
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
            allow_in_transaction=bool(given.get("allow_in_transaction", False)),
        )

    def _pool_option(self, name: str, given: object) -> Any:
        """Return ``given``, or the pool's setting if it is None, in its canonical form."""
        value = pool_setting(self._model._meta.label, name, self._declared) if given is None else given
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
