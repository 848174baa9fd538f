"""The pools of this project."""

from django.apps import apps
from django.utils.translation import gettext_noop as _

from resourcepool.events import Sentence
from resourcepool.exceptions import BadOption
from resourcepool.leases.models import AbstractLease
from resourcepool.leases.table import inherited_from
from resourcepool.resources.models import AbstractResource


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
