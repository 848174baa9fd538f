"""The settings: one dict ``RESOURCEPOOL`` in the project's settings, read when used."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from django.conf import settings

from resourcepool import options
from resourcepool.exceptions import BadOption, Hidden

DEFAULTS: dict[str, Any] = {
    # How long a grant lasts unless it is renewed, in seconds. A crashed holder blocks a row this long.
    "TTL": 60.0,
    # How long acquire() waits when the caller does not say, in seconds.
    "TIMEOUT": 60.0,
    # How long a row rests after a release before it can be claimed again, in seconds.
    "COOLDOWN": 0.0,
    # A lease is not renewed beyond this many seconds after it was granted; None: as long as the holder lives.
    "MAX_HOLD": None,
    # A lease that is held for longer, in seconds, is reported as leaked, with the place that acquired it; None: never.
    "LEAK_AFTER": None,
    # Which free resource is chosen: "spread", "sticky" or "random".
    "STRATEGY": "spread",
    # The first quarantine lasts "base" seconds; every further one twice as long, up to "cap".
    "QUARANTINE": {"base": 300.0, "cap": 86_400.0},
    # A waiter's place in line lapses this many seconds after its process died.
    "TICKET_TTL": 6.0,
    # Whether what happens to a pool's resources is written down.
    "HISTORY": True,
    # After so many seconds an event is removed from the history (by the sweep).
    "HISTORY_KEPT": 30 * 86_400.0,
    # Of more events than that the oldest are removed, whatever their age.
    "HISTORY_ROWS": 1_000_000,
    # When the dashboard and the sweep raise an alarm; in seconds.
    "ALARMS": {"oldest_wait": 60.0, "oldest_task": 600.0, "late_timer": 60.0, "unread": 600.0, "sweep": 600.0},
    # How resources are checked, per model; see docs/health-checks.md.
    "CHECKS": {},
    # What tells waiting processes to look at once: "postgresql", a Redis URL, another broker's URL; None: nothing does.
    "HINTS": None,
    # Whether MariaDB keeps the statements that a session sends often. False behind a proxy that shares sessions.
    "PREPARED_STATEMENTS": True,
    # Fernet keys for secrets at rest: the first encrypts, every one decrypts.
    "SECRET_KEYS": [],
    # What this node is, for timers: labels such as {"zone": "eu"} or {"canary": "yes"}, and the version of your code.
    "NODE_LABELS": {},
    "NODE_VERSION": "",
    # How many requests over REST may wait in line at a time in one process of the web server. Fewer than its threads.
    "REST_WAITS": 1,
    # What one user may have over REST, per model, e.g. {"resourcepool.Proxy": {"ttl": 120, "leases": 10}}: the longest
    # "ttl", "cooldown" and "max_hold" in seconds, the most "leases" at a time, the least "priority".
    "REST_LIMITS": {},
    # Per model, e.g. {"resourcepool.Proxy": {"ttl": 30}}: ttl, timeout, cooldown, max_hold, strategy, history,
    # leak_after.
    "POOLS": {},
}

POOL_OPTIONS = ("ttl", "timeout", "cooldown", "max_hold", "strategy", "history", "leak_after")


def setting(name: str) -> Any:
    """Return the value of ``RESOURCEPOOL[name]``, or its default.

    Raises:
        BadOption: when RESOURCEPOOL is not a dict, or a nested dict is not one.
    """
    default = DEFAULTS[name]
    if not isinstance(default, dict):
        return all_settings().get(name, default)
    _refuse_other_than_dict(f"RESOURCEPOOL[{name!r}]", type(all_settings().get(name, default)))
    return {**default, **all_settings().get(name, default)}


def all_settings() -> Mapping[str, Any]:
    """Return RESOURCEPOOL, which no local variable may refer to: error reports show these. Raises BadOption."""
    _refuse_other_than_dict("RESOURCEPOOL", type(getattr(settings, "RESOURCEPOOL", {})))
    return getattr(settings, "RESOURCEPOOL", {})


def _refuse_other_than_dict(name: str, kind: type) -> None:
    if kind is not dict and not issubclass(kind, Mapping):
        raise BadOption(name, Hidden(), f"a dict, not a {kind.__name__}")


def ticket_ttl() -> float:
    """Return RESOURCEPOOL["TICKET_TTL"] in seconds; raises BadOption."""
    value = setting("TICKET_TTL")
    try:
        return _known_ticket_ttl(value)
    except TypeError:  # a list, for example
        return _ticket_ttl(value)


def _ticket_ttl(value: object) -> float:
    return options.seconds("RESOURCEPOOL['TICKET_TTL']", value, least=0.5, most=3_600)


# Asked for by every wait; typed, because 1 == True.
_known_ticket_ttl = lru_cache(maxsize=1, typed=True)(_ticket_ttl)


def rest_waits() -> int:
    """Return RESOURCEPOOL["REST_WAITS"]; raises BadOption."""
    return options.whole("RESOURCEPOOL['REST_WAITS']", setting("REST_WAITS"), least=0, most=10_000)


def rest_limits(label: str) -> dict[str, Any]:
    """Return what one user may have of the model ``label`` ("app.Model") over REST; raises BadOption.

    Returns:
        {"ttl", "cooldown", "max_hold": seconds; "leases": at a time; None: no limit; "priority": the least}.
    """
    where, chosen = f"RESOURCEPOOL['REST_LIMITS'][{label!r}]", setting("REST_LIMITS").get(label, {})
    found: dict[str, Any] = {
        "ttl": options.DAY,
        "cooldown": options.DAY,
        "max_hold": None,
        "leases": None,
        "priority": -1_000_000,
    }
    if not isinstance(chosen, Mapping) or not chosen.keys() <= found.keys():
        raise BadOption(where, chosen, f"a dict with {', '.join(found)}")
    for name, value in chosen.items():
        about = f"{where}[{name!r}]"
        if name in ("ttl", "cooldown", "max_hold"):
            found[name] = options.seconds(about, value, least=0.0 if name == "cooldown" else 0.1)
        else:
            least = 0 if name == "leases" else -1_000_000
            found[name] = options.whole(about, value, least=least, most=1_000_000)
    return found


def pool_setting(label: str, option: str, declared: Mapping[str, Any]) -> Any:
    """Return ``option`` for the model ``label`` ("app.Model"): from the settings for this model, else as its
    class declared it, else the general setting."""
    per_model = setting("POOLS").get(label, {})
    if not isinstance(per_model, Mapping):
        raise BadOption(f"RESOURCEPOOL['POOLS'][{label!r}]", per_model, "a dict of options")
    if option in per_model:
        return per_model[option]
    if option in declared:
        return declared[option]
    return setting(option.upper())
