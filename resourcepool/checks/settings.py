"""Checks of the setting RESOURCEPOOL."""

import base64
import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from functools import partial
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning as CheckWarning, register
from django.views.decorators.debug import sensitive_variables

from resourcepool import options
from resourcepool.conf import (
    DEFAULTS,
    POOL_OPTIONS,
    all_settings,
    rest_limits,
    rest_waits,
    setting,
    ticket_ttl,
    unknown_settings,
)
from resourcepool.documentation import documented
from resourcepool.elections.models import election_models
from resourcepool.exceptions import BadOption, PackageMissing
from resourcepool.health_checks.checker import check_settings_of
from resourcepool.hints import choice
from resourcepool.locks.models import Lock as LockRow
from resourcepool.resources.registry import resource_models
from resourcepool.resources.requests import check_option
from resourcepool.resources.state import quarantine_limits
from resourcepool.status.alarms import Thresholds
from resourcepool.sweeps.pruning import history_kept, history_rows
from resourcepool.taskqueue.abstract import recorded_models
from resourcepool.taskqueue.timers.nodes import node_labels, node_version

_HINTS = documented("how-to/hints")


@register("resourcepool")
def check_settings(**_: Any) -> list[CheckMessage]:
    """Report unknown or invalid settings (E001), options for models that do not exist (E002), a hint service that
    this process cannot use (E012), and packages that are not installed (W041)."""
    if not isinstance(getattr(settings, "RESOURCEPOOL", {}), Mapping):
        return [Error("RESOURCEPOOL is not a dict.", id="resourcepool.E001")]
    messages = list(_unknown("RESOURCEPOOL", all_settings().keys(), DEFAULTS))
    messages += _check_options("RESOURCEPOOL", {name.upper(): setting(name.upper()) for name in POOL_OPTIONS})
    readers = (ticket_ttl, history_kept, history_rows, node_labels, node_version, rest_waits)
    prepares = partial(options.flag, "RESOURCEPOOL['PREPARED_STATEMENTS']", setting("PREPARED_STATEMENTS"))
    for check in (*readers, Thresholds.from_settings, _check_quarantine, _check_keys, prepares):
        messages += _wrong("", check)
    messages += _check_hints()
    models: dict[str, Any] = {model._meta.label: model for model in resource_models()}
    history_only: set[str] = {model._meta.label for model in (*election_models(), *recorded_models())}
    for name in ("POOLS", "CHECKS"):
        broken = list(_wrong("", partial(setting, name)))
        messages += broken
        for label in [] if broken else list(setting(name)):
            where = f"RESOURCEPOOL[{name!r}][{label!r}]"
            if label in models and name == "CHECKS":
                messages += _wrong("", partial(check_settings_of, models[label]))
            elif label in models:
                messages += _check_pool(where, setting(name)[label], POOL_OPTIONS)
            elif label in history_only and name == "POOLS":
                messages += _check_pool(where, setting(name)[label], ("history",))
            else:
                hint = f"Known models: {', '.join(models)}."
                messages.append(Error(f"{where}: no such resource model.", hint=hint, id="resourcepool.E002"))
    return [*messages, *_check_rest_limits({*models, LockRow._meta.label})]


def _check_rest_limits(labels: Collection[str]) -> Iterator[CheckMessage]:
    broken = list(_wrong("", partial(setting, "REST_LIMITS")))
    yield from broken
    for label in {} if broken else setting("REST_LIMITS"):
        if label in labels:
            yield from _wrong("", partial(rest_limits, label))
        else:
            hint, where = (
                f"Known models: {', '.join(sorted(labels))}.",
                f"RESOURCEPOOL['REST_LIMITS'][{label!r}]",
            )
            yield Error(f"{where}: no such resource model.", hint=hint, id="resourcepool.E002")


def _check_quarantine() -> None:
    unknown = setting("QUARANTINE").keys() - DEFAULTS["QUARANTINE"].keys()
    if unknown:
        raise BadOption("RESOURCEPOOL['QUARANTINE']", sorted(unknown, key=str), because="only base and cap")
    quarantine_limits()


@sensitive_variables()
def _check_keys() -> None:
    name, keys = "RESOURCEPOOL['SECRET_KEYS']", setting("SECRET_KEYS")
    if not isinstance(keys, list | tuple) or not set(map(type, keys)) <= {str, bytes}:
        raise BadOption(name, type(keys).__name__, "a list of Fernet keys")
    for number, key in enumerate(keys, 1):
        with contextlib.suppress(ValueError):
            if len(base64.urlsafe_b64decode(key)) == 32:
                continue
        raise BadOption(name, f"key {number}", "32 bytes in base64, as Fernet makes them")


def _check_hints() -> Iterator[CheckMessage]:
    try:
        chosen = choice.configured()
    except BadOption as error:
        hint = (
            f"Write for example 'postgresql', 'redis://localhost:6379/0' or 'amqp://localhost'; see {_HINTS}."
        )
        yield Error(f"{error}.", hint=hint, id="resourcepool.E001")
        return
    try:
        if chosen:
            chosen.check_usable()
    except PackageMissing as error:
        yield _package_missing(error)
    except BadOption as error:
        hint = f"See {_HINTS}. With None everything works, too: waiting processes poll."
        yield Error(f"{error}.", hint=hint, id="resourcepool.E012")


def _check_pool(where: str, chosen: Any, known: Collection[str]) -> Iterator[CheckMessage]:
    if not isinstance(chosen, Mapping):
        yield Error(f"{where} is not a dict.", id="resourcepool.E001")
        return
    yield from _unknown(where, chosen.keys(), known)
    yield from _check_options(where, {name: chosen[name] for name in chosen.keys() & set(known)})


def _check_options(where: str, chosen: Mapping[str, Any]) -> Iterator[CheckMessage]:
    for name, value in chosen.items():
        yield from _wrong(f"{where}[{name!r}]: ", partial(check_option, name.lower(), value))


def _unknown(where: str, names: Set[str], known: Any) -> Iterator[CheckMessage]:
    for error in unknown_settings(where, names, known):
        yield Error(str(error), hint=f"Known names: {', '.join(known)}.", id="resourcepool.E001")


def _wrong(where: str, check: Callable[[], object]) -> Iterator[CheckMessage]:
    try:
        check()
    except PackageMissing as error:
        yield _package_missing(error)
    except BadOption as error:
        yield Error(f"{where}{error}.", id="resourcepool.E001")


def _package_missing(error: PackageMissing) -> CheckMessage:
    # A warning: everything else works without it, and errors stop `makemigrations` and `migrate`.
    hint = "Install it, or remove the setting."
    return CheckWarning(f"{error}.", hint=hint, id="resourcepool.W041")
