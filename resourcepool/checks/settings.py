"""What is wrong with RESOURCEPOOL in the settings."""

import base64
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from resourcepool.conf import DEFAULTS, POOL_OPTIONS, setting, ticket_ttl
from resourcepool.exceptions import BadOption
from resourcepool.hints import choice
from resourcepool.resources.quarantine import Policy
from resourcepool.resources.registry import resource_models
from resourcepool.resources.requests import check_option
from resourcepool.status.alarms import Limits
from resourcepool.sweeps.pruning import history_kept, history_rows
from resourcepool.validity.rules import rules_of


@register("resourcepool")
def check_settings(**_: Any) -> list[CheckMessage]:
    """Report unknown or wrong settings (E001), pools and checks of models that do not exist (E002), and a service for
    hints that this process cannot use (E012)."""
    chosen = getattr(settings, "RESOURCEPOOL", {})
    if not isinstance(chosen, Mapping):
        return [Error("RESOURCEPOOL is not a dict.", id="resourcepool.E001")]
    found = list(_unknown("RESOURCEPOOL", chosen, DEFAULTS))
    for name in POOL_OPTIONS:
        found += _wrong(f"RESOURCEPOOL[{name.upper()!r}]: ", partial(_check_default, name))
    found += _wrong("", ticket_ttl)
    for check in (history_kept, history_rows, Limits.from_settings):
        found += _wrong("", check)
    found += _wrong("", _check_quarantine)
    found += _wrong("", _check_keys)
    found += _check_hints()
    pools: Mapping[str, Any] = {}
    found += _wrong("", partial(setting, "POOLS"))
    if isinstance(chosen.get("POOLS", {}), Mapping):
        pools = setting("POOLS")
    for label, pool in pools.items():
        found += _check_pool(label, pool)
    found += _wrong("", partial(setting, "CHECKS"))
    if isinstance(chosen.get("CHECKS", {}), Mapping):
        for label in setting("CHECKS"):
            found += _check_checker(label)
    return found


def _check_default(name: str) -> None:
    check_option(name, setting(name.upper()))


def _check_quarantine() -> None:
    unknown = setting("QUARANTINE").keys() - DEFAULTS["QUARANTINE"].keys()
    if unknown:
        raise BadOption("RESOURCEPOOL['QUARANTINE']", sorted(unknown), "only base and cap")
    Policy.from_settings()


def _check_keys() -> None:
    keys = setting("SECRET_KEYS")
    if not isinstance(keys, list | tuple) or not all(isinstance(key, str | bytes) for key in keys):
        raise BadOption("RESOURCEPOOL['SECRET_KEYS']", type(keys).__name__, "a list of Fernet keys")
    for number, key in enumerate(keys, 1):
        if not _is_fernet_key(key):
            raise BadOption(
                "RESOURCEPOOL['SECRET_KEYS']", f"key {number}", "32 bytes in base64, as Fernet makes them"
            )


def _is_fernet_key(key: str | bytes) -> bool:
    try:
        return len(base64.urlsafe_b64decode(key)) == 32
    except ValueError:
        return False


def _check_hints() -> Iterator[CheckMessage]:
    try:
        chosen = choice.chosen()
    except BadOption as error:
        hint = "For example 'postgresql', 'redis://localhost:6379/0' or 'amqp://localhost'; see docs/hints.md."
        yield Error(f"{error}.", hint=hint, id="resourcepool.E001")
        return
    try:
        if chosen:
            chosen.refuse_unusable()
    except BadOption as error:
        hint = "See docs/hints.md. With None everything works as well, and waiting processes look from time to time."
        yield Error(f"{error}.", hint=hint, id="resourcepool.E012")


def _check_pool(label: str, pool: Any) -> Iterator[CheckMessage]:
    where = f"RESOURCEPOOL['POOLS'][{label!r}]"
    if label not in _models():
        yield _no_such_model(where)
    elif not isinstance(pool, Mapping):
        yield Error(f"{where} is not a dict.", id="resourcepool.E001")
    else:
        yield from _unknown(where, pool, POOL_OPTIONS)
        for name in pool.keys() & set(POOL_OPTIONS):
            yield from _wrong(f"{where}[{name!r}]: ", partial(check_option, name, pool[name]))


def _check_checker(label: str) -> Iterator[CheckMessage]:
    model = _models().get(label)
    if model is None:
        yield _no_such_model(f"RESOURCEPOOL['CHECKS'][{label!r}]")
    else:
        yield from _wrong("", partial(rules_of, model))


def _models() -> dict[str, Any]:
    return {model._meta.label: model for model in resource_models()}


def _no_such_model(where: str) -> CheckMessage:
    hint = f"There are: {', '.join(_models())}."
    return Error(f"{where}: no such resource model.", hint=hint, id="resourcepool.E002")


def _unknown(where: str, chosen: Mapping[str, Any], known: Any) -> Iterator[CheckMessage]:
    for name in chosen.keys() - set(known):
        hint = f"There are: {', '.join(known)}."
        yield Error(f"{where}[{name!r}] is not a setting.", hint=hint, id="resourcepool.E001")


def _wrong(where: str, check: Callable[[], object]) -> Iterator[CheckMessage]:
    try:
        check()
    except BadOption as error:
        yield Error(f"{where}{error}.", id="resourcepool.E001")
