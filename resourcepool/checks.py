"""System checks: what is wrong with the settings, found before anything is leased."""

from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error, register

from resourcepool.conf import DEFAULTS, POOL_OPTIONS, setting
from resourcepool.exceptions import BadOption
from resourcepool.resources.models import AbstractResource
from resourcepool.resources.order import check_option
from resourcepool.resources.quarantine import Policy


@register("resourcepool")
def check_settings(**_: Any) -> list[CheckMessage]:
    """Report unknown or wrong settings (E001) and pools that do not exist (E002)."""
    from django.conf import settings

    chosen = getattr(settings, "RESOURCEPOOL", {})
    if not isinstance(chosen, dict):
        return [Error("RESOURCEPOOL is not a dict.", id="resourcepool.E001")]
    found: list[CheckMessage] = [
        Error(
            f"RESOURCEPOOL[{name!r}] is not a setting.",
            hint=f"There are: {', '.join(DEFAULTS)}.",
            id="resourcepool.E001",
        )
        for name in chosen.keys() - DEFAULTS.keys()
    ]
    found += [error for name in POOL_OPTIONS for error in _wrong(name.upper(), name, setting(name.upper()))]
    try:
        Policy.from_settings()
    except BadOption as error:
        found.append(Error(str(error), id="resourcepool.E001"))
    for label, pool in setting("POOLS").items():
        found += _check_pool(label, pool)
    return found


def _check_pool(label: str, pool: Any) -> list[CheckMessage]:
    labels = {model._meta.label for model in apps.get_models() if issubclass(model, AbstractResource)}
    where = f"POOLS[{label!r}]"
    if label not in labels:
        hint = f"There are: {', '.join(sorted(labels))}."
        return [Error(f"RESOURCEPOOL {where}: no such resource model.", hint=hint, id="resourcepool.E002")]
    if not isinstance(pool, dict):
        return [Error(f"RESOURCEPOOL {where} is not a dict.", id="resourcepool.E001")]
    found: list[CheckMessage] = []
    for name, value in pool.items():
        if name in POOL_OPTIONS:
            found += _wrong(f"{where}[{name!r}]", name, value)
        else:
            hint = f"There are: {', '.join(POOL_OPTIONS)}."
            found.append(
                Error(f"RESOURCEPOOL {where}[{name!r}] is no option.", hint=hint, id="resourcepool.E001")
            )
    return found


def _wrong(where: str, name: str, value: Any) -> list[CheckMessage]:
    if value is None and name == "max_hold":
        return []
    try:
        check_option(name, value)
    except BadOption as error:
        return [Error(f"RESOURCEPOOL {where}: {error}.", id="resourcepool.E001")]
    return []
