"""Checks of the project's models and classes, its databases (``manage.py check --database default``) and tenants."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning as CheckWarning, register
from django.db import connections, router

from resourcepool.documentation import documented
from resourcepool.exceptions import BadOption
from resourcepool.leases.models import inherited_from
from resourcepool.models import Event
from resourcepool.resources.models import OWN_PERMISSIONS
from resourcepool.resources.registry import inherited_models, resource_models
from resourcepool.resources.requests import RESERVED_NAMES
from resourcepool.resources.resource import Resource, parse_intervals
from resourcepool.resources.selectors import selectable
from resourcepool.safety.diagnosis import ambiguous_models, leased_models, used_aliases
from resourcepool.safety.problem import Problem

SETTER = "set_schema"  # a method of connections of a backend with a schema per tenant
META = "Write class Meta(AbstractResource.Meta), or"


@register("resourcepool")
def check_models(**_: Any) -> list[CheckMessage]:
    """Report resource models without the index for claims (W001) or a permission (W025), and fields hidden
    by options (W002)."""
    return [
        CheckWarning(text, hint=hint, obj=model, id=f"resourcepool.{code}")
        for model in resource_models()
        for code, text, hint in _faults(model)
    ]


def _faults(model: Any) -> Iterator[tuple[str, str, str]]:
    if not any(index.fields[:2] == ["in_service", "busy_before"] for index in model._meta.indexes):
        hint = f"{META} add Index(fields=['in_service', 'busy_before'])."
        yield "W001", "no index for claims: acquiring is slow.", hint
    if lacking := [name for name in OWN_PERMISSIONS if name not in model._meta.default_permissions]:
        names = ", ".join(lacking)
        hint = f"{META} default_permissions with {names}; then makemigrations."
        yield "W025", f"no permission to {names} it: only superusers can.", hint
    for name in sorted(selectable(model).keys() & RESERVED_NAMES):
        hint = f"acquire({name}=...) sets the option of that name; rename the field to select by it."
        yield "W002", f"{name!r} cannot be a selector.", hint


@register("resourcepool")
def check_inheritance(**_: Any) -> list[CheckMessage]:
    """Report models whose lease columns are in another model's table (E011)."""
    return [
        Error(
            f"its leases are in the table of {owner._meta.label}, so its own pool cannot lease anything.",
            hint=f"Make {owner._meta.label} abstract, so that each model has its own leases; or move the added fields"
            f" to a model with a OneToOneField to {owner._meta.label}, and lease through {owner._meta.label}.pool.",
            obj=model,
            id="resourcepool.E011",
        )
        for model in inherited_models()
        if (owner := inherited_from(model)) is not None
    ]


@register("resourcepool")
def check_renewals(**_: Any) -> list[CheckMessage]:
    """Report imported thread classes whose ttl is too short for three renewals (E003)."""
    messages: list[CheckMessage] = []
    for kind in _descendants(Resource):
        try:
            parse_intervals(kind)
        except BadOption as error:
            hint = "Set occupation_interval to a third of occupation_delta or less: one renewal may fail, one be late."
            name = f"{kind.__module__}.{kind.__qualname__}"
            messages.append(Error(f"{error}.", hint=hint, obj=name, id="resourcepool.E003"))
    return messages


def _descendants(kind: type[Resource]) -> Iterator[type[Resource]]:
    for child in kind.__subclasses__():
        # Skips classes made inside functions: they may be incomplete or unused.
        if getattr(sys.modules.get(child.__module__), child.__qualname__, None) is child:
            yield child
        yield from _descendants(child)


@register("resourcepool", Tags.database)
def check_databases(*, databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Report the problems of those of these databases that have leased models."""
    from resourcepool.safety.diagnosis import diagnose  # here, because most processes start without this check

    used = used_aliases() if databases else []
    leased = [connections[alias] for alias in databases or () if alias in used]
    return [_message(problem) for connection in leased for problem in diagnose(connection).problems]


@register("resourcepool")
def check_routers(**_: Any) -> list[CheckMessage]:
    """Report models that the routers write to several databases (E008)."""
    return [_message(problem) for problem in ambiguous_models()]


def _message(problem: Problem) -> CheckMessage:
    kind = Error if problem.is_error else CheckWarning
    return kind(problem.message, hint=f"{problem.hint} ({problem.link})", obj=problem.about, id=problem.id)


HINT = (
    "Move this app from TENANT_APPS to SHARED_APPS: every connection finds the tables of the shared schema. Add a"
    " column to distinguish the rows of the tenants. "
    f"({documented('reference/checks', 'e020')})"
)


@register("resourcepool")
def check_tenants(**_: Any) -> list[CheckMessage]:
    """Report apps with leased models whose tables exist per tenant (E020): background threads know no tenant."""
    models: list[Any] = [*leased_models(), Event]
    leased = {
        model._meta.app_label: model._meta.app_config.name
        for model in models
        if hasattr(connections[router.db_for_write(model)], SETTER)
    }
    of_tenants = _apps_of_tenants() if leased else set()
    text = "its tables exist per tenant, but leases are renewed, waited for and recorded in the shared schema."
    return [
        Error(text, hint=HINT, obj=label, id="resourcepool.E020")
        for label, name in leased.items()
        if name in of_tenants
    ]


def _apps_of_tenants() -> set[str]:
    shared, types = getattr(settings, "PUBLIC_SCHEMA_NAME", "public"), getattr(settings, "TENANT_TYPES", {})
    apps = [*getattr(settings, "TENANT_APPS", ())]
    for name, kind in types.items():
        apps += kind["APPS"] if name != shared else ()
    return {AppConfig.create(app).name for app in apps}
