"""The databases of the leased models, as the project's routers decide."""

from typing import Any

from django.apps import apps
from django.db import router

from resourcepool.leases.table import Model, inherited_from
from resourcepool.models import AbstractLease, AbstractResource
from resourcepool.safety.problem import Problem, problem
from resourcepool.waiting.models import Ticket

ROUTER_CALLS = 16  # some routers answer at random


def leased_models() -> list[Model]:
    """Return every leased model of the project except Ticket."""
    return [
        model
        for model in apps.get_models()
        if issubclass(model, AbstractLease)
        and model is not Ticket
        and not model._meta.proxy
        and not inherited_from(model)
    ]


def aliases_of(model: Model) -> set[str]:
    """Return the databases to which the routers write ``model``; one, if they are consistent."""
    return {router.db_for_write(model) for _ in range(ROUTER_CALLS)}


def models_on(alias: str) -> list[Model]:
    """Return the leased models on this database; with Ticket, if any of them is a resource."""
    here = [model for model in leased_models() if alias in aliases_of(model)]
    return [*here, Ticket] if any(issubclass(model, AbstractResource) for model in here) else here


def own_models_on(alias: str) -> list[Any]:
    """Return this package's own models on this database."""
    ours = apps.get_app_config("resourcepool").get_models()
    return [model for model in ours if router.db_for_write(model) == alias]


def used_aliases() -> list[str]:
    """Return the databases of leased models."""
    return sorted({alias for model in leased_models() for alias in aliases_of(model)})


def ambiguous_models() -> list[Problem]:
    """Report models that the routers write to several databases."""
    return [
        problem("E008", model._meta.label, aliases=", ".join(sorted(aliases)))
        for model in leased_models()
        if len(aliases := aliases_of(model)) > 1
    ]
