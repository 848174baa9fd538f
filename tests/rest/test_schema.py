"""The API as OpenAPI matches the views; that answers do, ``Caller`` checks in every test of the API."""

import io
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator, ValidationError
from rest_framework.authentication import TokenAuthentication

from resourcepool.locks import Channel, Lock
from resourcepool.models import Proxy, Stream
from resourcepool.operations import OPERATIONS
from resourcepool.rest import urls, view
from resourcepool.rest.schema import attribute_texts, generating
from resourcepool.rest.urls import described
from resourcepool.rest.view import View
from resourcepool.taskqueue import submit
from tests.app.rows import hold, new
from tests.eventually import at_once
from tests.rest.conftest import Caller
from tests.rest.described import refuse_undescribed


@pytest.fixture
def schema(root: Caller) -> Any:
    return root.get("openapi").json()


def body_of(schema: Any, operation: Any) -> Any:
    reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    return schema["components"]["schemas"][reference.rpartition("/")[2]]


def posts(schema: Any) -> list[tuple[str, Any]]:
    """Return each path that has a POST, and its operation."""
    return [(path, one["post"]) for path, one in schema["paths"].items() if "post" in one]


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_it_is_valid_and_no_part_of_it_is_guessed(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drf_spectacular.settings.spectacular_settings.OAS_VERSION", version)
    output = io.StringIO()
    call_command("spectacular", fail_on_warn=True, validate=True, stdout=output)
    assert "/api/pools/{pool}/acquire" in output.getvalue()


def test_every_address_is_described_once(schema: Any) -> None:
    assert (schema["openapi"], schema["servers"]) == ("3.1.0", [{"url": "/api"}])
    assert len(schema["paths"]) == len(described)
    ids = [one["operationId"] for path in schema["paths"].values() for one in path.values()]
    assert len(set(ids)) == len(ids)
    assert {"get_pools", "post_pools_pool_acquire"} <= set(ids)
    assert all(one["summary"] for path in schema["paths"].values() for one in path.values())


def test_the_parameters_of_an_address_are_all_there(schema: Any) -> None:
    for path, operations in schema["paths"].items():
        for one in operations.values():
            named = [p["name"] for p in one.get("parameters", ()) if p["in"] == "path"]
            assert sorted(named) == sorted(re.findall(r"{(\w+)}", path))


def test_the_parameters_of_a_query_are_those_that_are_taken(schema: Any, root: Caller) -> None:
    for path, operations in schema["paths"].items():
        if "get" in operations:
            named = [p["name"] for p in operations["get"].get("parameters", ()) if p["in"] == "query"]
            refused = root.get(re.sub("{.*}", "proxy", path[1:]), nothing="x").json()
            assert refused["name"] == "nothing"
            assert sorted(refused["detail"].rpartition("allowed: ")[2].split(", ")) == sorted(named or ["none"])


def test_a_body_that_is_described_is_taken(schema: Any, root: Caller) -> None:
    for path, operation in posts(schema):
        about = body_of(schema, operation)
        sent = dict.fromkeys([*about["properties"], "nothing"])
        said = root.post(path[1:].format(pool="proxy", name="revoke"), **sent).json()
        if said["error"] == "BadOption":  # all described names are known
            assert said["name"] == "nothing"
            assert all(name in said["detail"] for name in about["properties"])
        if "required" in about:
            assert root.post(path[1:].format(name="x")).json()["name"] in about["required"]


def test_a_generated_client_can_send_and_read_names_that_a_model_has(schema: Any) -> None:
    schemas = schema["components"]["schemas"]
    for where in (
        schemas["AcquireRequest"]["properties"]["where"],
        schemas["OperateRequest"]["properties"]["where"],
        schemas["Lease"]["properties"]["resource"],
    ):
        assert (where["type"], where["additionalProperties"]) == ("object", {})


def test_only_an_operation_takes_names_that_are_not_described(schema: Any) -> None:
    for path, operation in posts(schema):
        others = body_of(schema, operation)["additionalProperties"]
        assert others == path.endswith("/operations/{name}"), path


def test_a_client_is_told_what_the_fields_mean(schema: Any) -> None:
    schemas = schema["components"]["schemas"]
    pool, lease = schemas["PoolStatus"]["properties"], schemas["Lease"]["properties"]
    assert pool["waiters"]["description"] == "number of waiters"
    assert pool["oldest_wait"]["description"] == "how long the first of them has waited."
    assert pool["utilisation"]["description"] == "The leased share of ``working``, from 0 to 1."
    assert schemas["PoolStatus"]["description"].startswith("One pool at one moment")
    assert "valid without a renewal" in lease["expires_in"]["description"]
    assert "leased" in schemas["StateEnum"]["enum"]


def test_the_attributes_of_a_docstring_are_read_with_those_that_share_a_line() -> None:
    text = "A thing.\n\nAttributes:\n    one, two: both\n        of them. ``three``: another.\n    four: last\n"
    assert attribute_texts(text) == {
        "one": "both of them",
        "two": "both of them",
        "three": "another.",
        "four": "last",
    }
    assert attribute_texts("A thing.") == {}


class Bearer(TokenAuthentication):
    keyword = "Bearer"


def test_a_generated_client_is_told_how_to_log_in(
    schema: Any, root: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert schema["components"]["securitySchemes"] == {
        "cookieAuth": {"type": "apiKey", "in": "cookie", "name": "sessionid"},
        "basicAuth": {"type": "http", "scheme": "basic"},
    }
    assert schema["paths"]["/pools"]["get"]["security"] == [{"cookieAuth": []}, {"basicAuth": []}]
    monkeypatch.setattr(View, "authentication_classes", [Bearer])
    found = root.get("openapi").json()["components"]["securitySchemes"]
    assert found == {"tokenAuth": {"type": "http", "scheme": "bearer"}}


def test_an_answer_that_is_empty_or_no_json_is_described_so(schema: Any) -> None:
    released = schema["paths"]["/leases/release"]["post"]["responses"]
    metrics = schema["paths"]["/metrics"]["get"]["responses"]
    assert "content" not in released["204"]
    assert [*metrics["200"]["content"]] == ["text/plain"]
    assert [*released["409"]["content"]] == [*metrics["403"]["content"]] == ["application/json"]


def test_an_answer_that_is_not_described_is_found(root: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = root.get("pools")
    for wrong in ({"pools": [], "more": 1}, {}, {"pools": {}}):
        monkeypatch.setattr(answer, "json", lambda wrong=wrong: wrong)
        with pytest.raises(ValidationError):
            refuse_undescribed(answer)


def test_every_reading_is_described_with_something_to_read(root: Caller, schema: Any) -> None:
    row = new(Proxy)
    hold(row, holder="me")
    Stream.objects.create(name="oracle")
    submit("oracle", "note")
    Channel("news").publish(1)
    with Lock("nightly"):
        for address in (
            *("pools", "pools/proxy", "pools/proxy/leases", "pools/proxy/resources"),
            f"pools/proxy/resources/{row.pk}",
            *("pools/proxy/operations", "locks", "locks/nightly", "streams", "streams/oracle", "channels/news"),
            *("alarms", "queues"),
        ):
            assert root.get(address).status_code == 200, address


def test_every_operation_can_be_sent_as_it_is_described(schema: Any) -> None:
    about = Draft202012Validator(schema["components"]["schemas"]["OperateRequest"])
    for operation in OPERATIONS.values():
        about.validate({"all": True, **{field.name: "x" for field in operation.fields}})


def test_the_description_is_made_by_one_thread_at_a_time(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(*args: Any, **kwargs: Any) -> Any:
        return {"paths": {}, "components": {}, "others_wait": generating.locked()}

    monkeypatch.setattr(SchemaGenerator, "get_schema", make)
    boss = User.objects.create_superuser("boss")
    assert at_once(4, lambda _: Caller(boss).client.get("/api/openapi").json()["others_wait"]) == [True] * 4


def test_without_drf_spectacular_all_but_the_description_works(
    root: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (urls, view):
        monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert View.schema is None
    answer = root.get("openapi")
    assert (answer.status_code, answer.json()["error"], answer.json()["name"]) == (404, "NotFound", "openapi")
    assert "pip install 'django-resourcepool[openapi]'" in answer.json()["detail"]
    assert root.get("pools").status_code == 200
