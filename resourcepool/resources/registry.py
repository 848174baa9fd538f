"""Finds pools, and resources in them, by the names that operators use."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.apps import apps
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_noop as _

from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.leases.models import AbstractLease
from resourcepool.leases.table import inherited_from
from resourcepool.resources import selectors
from resourcepool.resources.models import AbstractResource
from resourcepool.resources.queryset import ResourceQuerySet


def resource_models() -> list[type[AbstractResource]]:
    """Return every resource model of the project that can be leased, in the order of their labels."""
    models = [model for model in _leased() if issubclass(model, AbstractResource) and not inherited_from(model)]
    return sorted(models, key=lambda model: model._meta.label_lower)


def inherited_models() -> list[type[AbstractLease]]:
    """Return all models of the project that inherit leases from another table, so that they cannot be leased."""
    return sorted(filter(inherited_from, _leased()), key=lambda model: model._meta.label_lower)


def _leased() -> list[type[AbstractLease]]:
    return [model for model in apps.get_models() if issubclass(model, AbstractLease)]


def resource_model(label: str) -> type[AbstractResource]:
    """Return the resource model of this name ("app.Model", or "Model" where that is unambiguous).

    Raises:
        BadOption: there is none, or more than one; names the existing ones.
    """
    wanted = label.lower()
    found = [
        model for model in resource_models() if wanted in (model._meta.label_lower, str(model._meta.model_name))
    ]
    if len(found) != 1:
        there_are = ", ".join(model._meta.label for model in resource_models())
        raise BadOption("pool", label, Sentence(_("one of %(names)s"), names=there_are))
    return found[0]


def all_resources(model: Any) -> ResourceQuerySet:
    """Return all rows of ``model`` on the database that decides leases, including rows its default manager hides."""
    return ResourceQuerySet(model=model, using=model.pool.using)


def select_resources(
    model: Any, pks: Sequence[str] = (), criteria: Mapping[str, Any] | None = None
) -> ResourceQuerySet:
    """Return the resources with these primary keys, or without any all resources, that match ``criteria``.

    Raises:
        BadOption: a primary key that no resource has, an unknown field, or a value that the field does not accept.
    """
    rows = all_resources(model).filter(
        selectors.selector_filter(model, selectors.canonical_selector(model, criteria or {}))
    )
    if not pks:
        return rows
    wanted = [parse_key(model, pk) for pk in pks]
    there = set(all_resources(model).filter(pk__in=wanted).values_list("pk", flat=True))
    for pk in wanted:
        if pk not in there:
            raise BadOption("id", str(pk), because=Sentence(_("no %(pool)s has it"), pool=model._meta.label))
    return rows.filter(pk__in=wanted)


def parse_key(model: Any, text: str) -> Any:
    """Return ``text`` as a primary key of ``model``; raises BadOption."""
    try:
        value = model._meta.pk.to_python(text)
        model._meta.pk.run_validators(value)  # SQLite's driver fails on numbers that are too large
    except (ValidationError, ValueError, TypeError):
        raise BadOption("id", text, Sentence(_("a primary key of %(pool)s"), pool=model._meta.label)) from None
    return value
