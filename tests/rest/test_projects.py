"""Projects with their own versioning, formats, schemas, and URL prefixes."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from django.urls import include, path
from drf_spectacular.generators import SchemaGenerator
from rest_framework.settings import api_settings
from rest_framework.versioning import NamespaceVersioning, QueryParameterVersioning, URLPathVersioning
from rest_framework.views import APIView

from resourcepool.models import Proxy
from tests.app.rows import new
from tests.rest.conftest import Caller

ROWS = ("", "pools", "pools/proxy", "locks", "locks/nightly", "streams", "alarms", "metrics", "openapi")


@pytest.fixture
def project(settings: Any) -> Callable[..., None]:
    """``project(prefix, versioning)``: the API under another prefix, in a project with this versioning."""

    def put(prefix: str, versioning: Any = None) -> None:
        urls: Any = ModuleType("urls")
        urls.urlpatterns = [path(prefix, include("resourcepool.rest.urls"))]
        settings.ROOT_URLCONF = urls
        settings.REST_FRAMEWORK = {"DEFAULT_VERSIONING_CLASS": versioning, "ALLOWED_VERSIONS": ["v1"]}

    return put


@pytest.mark.parametrize("versioning", [URLPathVersioning, NamespaceVersioning, None])
def test_the_api_has_the_versions_of_no_project(
    root: Caller, project: Callable[..., None], monkeypatch: pytest.MonkeyPatch, versioning: Any
) -> None:
    monkeypatch.setattr(APIView, "versioning_class", versioning)  # as at import, from the settings
    project("api/<version>/")
    new(Proxy)
    for address in ROWS:
        assert root.get(f"v1/{address}").status_code == 200, address
    root.got("v1/pools/proxy/acquire")
    root.got("v1/locks/nightly/acquire")


def test_an_address_may_begin_with_parts_of_a_projects_own(root: Caller, project: Callable[..., None]) -> None:
    project("api/<str:tenant>/<name>/")
    new(Proxy)
    assert root.get("shop/x/pools").status_code == 200
    assert root.get("shop/x/pools/proxy").json()["label"] == "resourcepool.Proxy"
    root.got("shop/x/pools/proxy/acquire")
    assert root.got("shop/x/locks/nightly/acquire")["id"] == "nightly"


def test_a_parameter_of_the_frameworks_own_is_taken(root: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    assert root.get("pools", format="json").status_code == 200
    assert root.get("pools", format="xml").status_code == 404
    assert root.get("pools", version="1").status_code == 400
    monkeypatch.setattr(api_settings, "DEFAULT_VERSIONING_CLASS", QueryParameterVersioning)
    assert root.get("pools", version="1").status_code == 200


def test_it_is_in_the_schema_of_the_project_and_has_its_own(root: Caller, project: Callable[..., None]) -> None:
    project("tools/<version>/")
    paths = SchemaGenerator().get_schema(public=True)["paths"]
    own = root.client.get("/tools/v1/openapi").json()
    assert own["servers"] == [{"url": "/tools/v1"}]
    assert [*paths] == [f"/tools/{{version}}{path}" for path in own["paths"]]
