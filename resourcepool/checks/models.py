"""Checks of the project's models and classes."""

import sys
from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, register

from resourcepool.checks.messages import CheckWarning, Error
from resourcepool.exceptions import BadOption
from resourcepool.leases.table import inherited_from
from resourcepool.resources.models import OWN_PERMISSIONS
from resourcepool.resources.registry import inherited_models, resource_models
from resourcepool.resources.requests import RESERVED_NAMES
from resourcepool.resources.resource import Resource, parse_intervals
from resourcepool.resources.selectors import selectable

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
