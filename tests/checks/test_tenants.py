"""Projects with one schema per tenant, as with django-tenants."""

from typing import Any

import pytest
from django.core.checks import run_checks
from django.db import connection


def found() -> set[str]:
    return {str(one.obj) for one in run_checks(tags=["resourcepool"]) if one.id == "resourcepool.E020"}


@pytest.fixture
def tenants(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Any:
    """Make the connection look like one of such a backend."""
    monkeypatch.setattr(connection, "set_schema", lambda name: None, raising=False)
    return settings


@pytest.mark.parametrize("app", ["resourcepool", "resourcepool.apps.ResourcePoolConfig"])
def test_tables_of_each_tenant_are_refused(app: str, tenants: Any) -> None:
    tenants.TENANT_APPS = ["django.contrib.auth", app]
    assert found() == {"resourcepool"}


def test_tables_of_project_resources_per_tenant_are_refused(tenants: Any) -> None:
    tenants.TENANT_APPS = ["tests.app"]
    assert found() == {"testapp"}


def test_tables_of_one_tenant_type_are_refused(tenants: Any) -> None:
    tenants.TENANT_TYPES = {"public": {"APPS": ["tests.app"]}, "big": {"APPS": ["resourcepool"]}}
    assert found() == {"resourcepool"}


def test_tables_that_all_tenants_share_are_fine(tenants: Any) -> None:
    tenants.SHARED_APPS = ["resourcepool", "tests.app"]
    tenants.TENANT_APPS = ["django.contrib.auth"]
    assert not found()


def test_tenant_settings_without_a_tenant_backend_are_ignored(settings: Any) -> None:
    settings.TENANT_APPS = ["resourcepool"]
    assert not found()
