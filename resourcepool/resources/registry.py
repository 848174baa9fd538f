"""Finds pools and resources by the names that operators use."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.apps import apps

from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.leases.models import AbstractLease, inherited_from
from resourcepool.resources import selectors
from resourcepool.resources.models import AbstractResource
from resourcepool.resources.queryset import ResourceQuerySet
from resourcepool.resources.selectors import parse_key
from resourcepool.translation import gettext_noop as _


def resource_models() -> list[type[AbstractResource]]:
    """Return the leasable resource models of the project, sorted by label."""
    models = [model for model in _leased() if issubclass(model, AbstractResource) and not inherited_from(model)]
    return sorted(models, key=lambda model: model._meta.label_lower)


def inherited_models() -> list[type[AbstractLease]]:
    """Return the models that inherit lease columns from another table and therefore cannot be leased."""
    return sorted(filter(inherited_from, _leased()), key=lambda model: model._meta.label_lower)


def _leased() -> list[type[AbstractLease]]:
    return [model for model in apps.get_models() if issubclass(model, AbstractLease)]


def resource_model(label: str) -> type[AbstractResource]:
    """Return the resource model of this name ("app.Model", or "Model" if that is unambiguous).

    Raises:
        BadOption: no model, or more than one, has this name; lists the existing ones.
    """
    name = label.lower()
    matches = [
        model for model in resource_models() if name in (model._meta.label_lower, str(model._meta.model_name))
    ]
    if len(matches) != 1:
        labels = ", ".join(model._meta.label for model in resource_models())
        raise BadOption("pool", label, Sentence(_("one of %(names)s"), names=labels))
    return matches[0]


def all_resources(model: Any) -> ResourceQuerySet:
    """Return all rows of ``model`` in the database that decides leases, also those that its default manager hides."""
    return ResourceQuerySet(model=model, using=model.pool.using)


def select_resources(
    model: Any, pks: Sequence[str] = (), criteria: Mapping[str, Any] | None = None
) -> ResourceQuerySet:
    """Return the resources that match ``criteria`` and have one of ``pks`` (empty: any primary key).

    Raises:
        BadOption: an unknown primary key or field, or a value that the field does not accept.
    """
    rows = all_resources(model).filter(
        selectors.selector_filter(model, selectors.canonical_selector(model, criteria or {}))
    )
    if not pks:
        return rows
    keys = [parse_key(model, pk) for pk in pks]
    existing = set(all_resources(model).filter(pk__in=keys).values_list("pk", flat=True))
    for pk in keys:
        if pk not in existing:
            raise BadOption(
                "id", str(pk), because=Sentence(_("no %(pool)s has this id"), pool=model._meta.label)
            )
    return rows.filter(pk__in=keys)
