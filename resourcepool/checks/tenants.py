"""Checks projects with one database schema per tenant (django-tenants, django-tenant-schemas)."""

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, register
from django.db import connections, router

from resourcepool.checks.messages import Error
from resourcepool.documentation import documented
from resourcepool.models import Event
from resourcepool.safety.diagnosis import leased_models

SETTER = "set_schema"  # a method of the connections of such a backend
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
    """Return the names of the apps in TENANT_APPS and TENANT_TYPES."""
    shared, types = getattr(settings, "PUBLIC_SCHEMA_NAME", "public"), getattr(settings, "TENANT_TYPES", {})
    apps = [*getattr(settings, "TENANT_APPS", ())]
    for name, kind in types.items():
        apps += kind["APPS"] if name != shared else ()
    return {AppConfig.create(app).name for app in apps}
