"""The settings: one dict ``RESOURCEPOOL`` in the project's settings, read when used."""

from collections.abc import Iterable, Mapping, Set
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from django.conf import settings

from resourcepool import options
from resourcepool.exceptions import BadOption, Hidden

DEFAULTS: dict[str, Any] = {
    # How long a grant lasts unless it is renewed, 0.1 to 86,400 s. A crashed holder blocks its row this long.
    "TTL": 60.0,
    # How long `acquire()` waits by default, 0 to 86,400 s.
    "TIMEOUT": 60.0,
    # Time after a release before the row can be claimed again, 0 to 86,400 s.
    "COOLDOWN": 0.0,
    # A lease is not renewed beyond this long after its grant, 0.1 to 86,400 s; `None`: no limit.
    "MAX_HOLD": None,
    # A lease held for longer, 0 to 86,400 s, is reported as leaked, with the line that acquired it; `None`: never.
    "LEAK_AFTER": None,
    # How a free resource is chosen: `"spread"`, `"sticky"` or `"random"`.
    "STRATEGY": "spread",
    # The first quarantine lasts `base` seconds; each consecutive one twice as long, up to `cap` (30 days at most).
    "QUARANTINE": {"base": 300.0, "cap": 86_400.0},
    # How long the ticket of a crashed waiter remains, 0.5 to 3,600 s.
    "TICKET_TTL": 6.0,
    # Whether events are recorded in the history.
    "HISTORY": True,
    # Age at which the job "prune history" removes an event, or a move of a queue; 60 s to 10 years.
    "HISTORY_KEPT": 30 * 86_400.0,
    # Maximum number of events, and of moves of queues, at least 1,000; above it the oldest are removed, whatever
    # their age.
    "HISTORY_ROWS": 1_000_000,
    # Limits of alarms, each 0 to 86,400 s: the first waiter has waited (`oldest_wait`), the first task of a stream or
    # dispenser is old (`oldest_task`), a timer is due (`late_timer`), a message of a durable subscription is unread
    # (`unread`), the sweep has not run (`sweep`) for longer.
    "ALARMS": {"oldest_wait": 60.0, "oldest_task": 600.0, "late_timer": 60.0, "unread": 600.0, "sweep": 600.0},
    # Health checks per model: `{"resourcepool.Proxy": {"url": "https://example.com/"}}`.
    "CHECKS": {},
    # How waiting processes are woken at once: `"postgresql"`, `"postgresql:alias"`, or a URL of Redis or of another
    # broker; `None`: they poll.
    "HINTS": None,
    # Whether frequent statements are prepared on MariaDB. `False` behind a proxy that shares sessions.
    "PREPARED_STATEMENTS": True,
    # Fernet keys for secrets at rest: the first encrypts, all decrypt.
    "SECRET_KEYS": [],
    # The labels of this timer node, up to 20: `{"zone": "eu"}`, or `{"canary": "yes"}`.
    "NODE_LABELS": {},
    # The version of your code on this timer node, as PEP 440 has them, up to 50 characters: `"2.10"`.
    "NODE_VERSION": "",
    # How many REST requests may wait for a lease at a time in one web server process, 0 to 10,000; fewer than its
    # threads, because renewals need one.
    "REST_WAITS": 1,
    # Limits of one REST user per model, `{"resourcepool.Proxy": {"ttl": 120, "leases": 10}}`: the longest `ttl`,
    # `cooldown` and `max_hold` in seconds, the maximum number of `leases` at a time, the lowest `priority`.
    "REST_LIMITS": {},
    # Settings of a single model, `{"resourcepool.Proxy": {"ttl": 30}}`: `ttl`, `timeout`, `cooldown`, `max_hold`,
    # `strategy`, `history`, `leak_after`.
    "POOLS": {},
}

POOL_OPTIONS = ("ttl", "timeout", "cooldown", "max_hold", "strategy", "history", "leak_after")


def setting(name: str) -> Any:
    """Return the value of ``RESOURCEPOOL[name]``, or its default.

    Raises:
        BadOption: RESOURCEPOOL, or a nested value that must be a dict, is not a dict.
    """
    default = DEFAULTS[name]
    if not isinstance(default, dict):
        try:
            return settings.RESOURCEPOOL.get(name, default)
        except AttributeError:  # there is none, or it is not a dict
            return all_settings().get(name, default)
    _refuse_other_than_dict(f"RESOURCEPOOL[{name!r}]", type(all_settings().get(name, default)))
    return {**default, **all_settings().get(name, default)}


def all_settings() -> Mapping[str, Any]:
    """Return RESOURCEPOOL; raises BadOption. Keep it out of local variables, which error reports show."""
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


# Cached, because every wait reads it; typed, because 1 == True.
_known_ticket_ttl = lru_cache(maxsize=1, typed=True)(_ticket_ttl)


def rest_waits() -> int:
    """Return RESOURCEPOOL["REST_WAITS"]; raises BadOption."""
    return options.whole("RESOURCEPOOL['REST_WAITS']", setting("REST_WAITS"), least=0, most=10_000)


def rest_limits(label: str) -> dict[str, Any]:
    """Return one REST user's limits for the model ``label`` ("app.Model"); raises BadOption.

    Returns:
        {"ttl", "cooldown", "max_hold": seconds; "leases": at a time; None: no limit; "priority": the lowest}.
    """
    where, chosen = f"RESOURCEPOOL['REST_LIMITS'][{label!r}]", setting("REST_LIMITS").get(label, {})
    limits: dict[str, Any] = {
        "ttl": options.DAY,
        "cooldown": options.DAY,
        "max_hold": None,
        "leases": None,
        "priority": -1_000_000,
    }
    if not isinstance(chosen, Mapping) or not chosen.keys() <= limits.keys():
        raise BadOption(where, chosen, f"a dict with no other keys than {', '.join(limits)}")
    for name, value in chosen.items():
        about = f"{where}[{name!r}]"
        if name in ("ttl", "cooldown", "max_hold"):
            limits[name] = options.seconds(about, value, least=0.0 if name == "cooldown" else 0.1)
        else:
            least = 0 if name == "leases" else -1_000_000
            limits[name] = options.whole(about, value, least=least, most=1_000_000)
    return limits


def refuse_unknown_settings(label: str) -> None:
    """Raise BadOption for a name in RESOURCEPOOL, or in its POOLS[label], that is not a setting.

    ``manage.py check`` reports it, too (E001); scripts do not run it.
    """
    unknown = unknown_settings("RESOURCEPOOL", all_settings().keys(), DEFAULTS)
    if isinstance(of_pool := setting("POOLS").get(label), Mapping):
        unknown += unknown_settings(f"RESOURCEPOOL['POOLS'][{label!r}]", of_pool.keys(), POOL_OPTIONS)
    if unknown:
        raise unknown[0]


def unknown_settings(where: str, names: Set[Any], known: Iterable[str]) -> list[BadOption]:
    """Return an error for each unknown name, with a similar known one, if there is one."""
    by_folded = {each.casefold(): each for each in known}
    errors = []
    for name in map(str, names - set(known)):
        close = get_close_matches(name.casefold(), by_folded, 1)
        why = "no such setting" + "".join(f"; did you mean {by_folded[each]!r}?" for each in close)
        errors.append(BadOption(f"{where}[{name!r}]", Hidden(), because=why))
    return errors


def pool_setting(label: str, option: str, declared: Mapping[str, Any]) -> Any:
    """Return ``option`` of the model ``label`` ("app.Model").

    The model's own entry in the settings comes first, then ``declared`` by its class, then the general setting.
    """
    per_model = setting("POOLS").get(label, {})
    if not isinstance(per_model, Mapping):
        raise BadOption(f"RESOURCEPOOL['POOLS'][{label!r}]", per_model, "a dict of options")
    if option in per_model:
        return per_model[option]
    if option in declared:
        return declared[option]
    return setting(option.upper())
