"""Checks a project whose tenants have database schemas of their own (django-tenants, django-tenant-schemas)."""

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.db import connections, router

from resourcepool.models import Event
from resourcepool.safety.routing import leased_models

SETTER = "set_schema"  # what a connection has that such a backend makes
HINT = (
    "Name this app in SHARED_APPS and not in TENANT_APPS: every connection finds the tables of the shared schema. A"
    " column can tell the rows of the tenants apart. (docs/checks.md#e020)"
)


@register("resourcepool")
def check_tenants(**_: Any) -> list[CheckMessage]:
    """Report apps with leased models of which each tenant has tables of its own (E020): our threads know no tenant."""
    models: list[Any] = [*leased_models(), Event]
    leased = {
        model._meta.app_label: model._meta.app_config.name
        for model in models
        if hasattr(connections[router.db_for_write(model)], SETTER)
    }
    of_tenants = _apps_of_tenants() if leased else set()
    text = "each tenant has tables of its own, but leases are renewed, waited for and recorded in the shared schema."
    return [
        Error(text, hint=HINT, obj=label, id="resourcepool.E020")
        for label, name in leased.items()
        if name in of_tenants
    ]


def _apps_of_tenants() -> set[str]:
    """Return the names of the apps that the settings name for tenants."""
    shared, types = getattr(settings, "PUBLIC_SCHEMA_NAME", "public"), getattr(settings, "TENANT_TYPES", {})
    apps = [*getattr(settings, "TENANT_APPS", ())]
    for name, kind in types.items():
        apps += kind["APPS"] if name != shared else ()
    return {AppConfig.create(app).name for app in apps}
