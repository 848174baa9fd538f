"""The API as OpenAPI matches the views."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from rest_framework.authentication import BaseAuthentication, TokenAuthentication

from resourcepool.models import Proxy, Stream
from resourcepool.rest.schema import NAMES, OpenAPI
from resourcepool.rest.urls import described
from tests.app.rows import new
from tests.rest.conftest import Caller

KINDS = {"string": str, "number": (int, float), "integer": int, "object": dict, "boolean": bool, "array": list}


@pytest.fixture
def schema(root: Caller) -> Any:
    return root.get("openapi").json()


def fits(value: Any, schema: Any, schemas: Any) -> bool:
    """Whether the value matches the schema, for the keywords that this API uses."""
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    right = "type" not in schema or isinstance(value, KINDS[schema["type"]])
    return (
        right
        and all(name in value for name in schema.get("required", ()))
        and all(
            fits(value[name], one, schemas)
            for name, one in schema.get("properties", {}).items()
            if name in value
        )
    )


def body_of(operation: Any) -> Any:
    if "requestBody" not in operation:
        return {"properties": {}}
    return operation["requestBody"]["content"]["application/json"]["schema"]


def test_every_address_is_described_once(schema: Any) -> None:
    assert (schema["openapi"], schema["servers"]) == ("3.1.0", [{"url": "/api"}])
    assert len(schema["paths"]) == len(described)
    ids = [one["operationId"] for path in schema["paths"].values() for one in path.values()]
    assert len(set(ids)) == len(ids)
    assert all(one["summary"] for path in schema["paths"].values() for one in path.values())


def test_the_parameters_of_an_address_are_all_there(schema: Any) -> None:
    for path, operations in schema["paths"].items():
        for one in operations.values():
            named = [parameter["name"] for parameter in one["parameters"] if parameter["in"] == "path"]
            assert named == re.findall(r"{(\w+)}", path)


def test_every_name_that_is_described_is_taken_somewhere(schema: Any) -> None:
    taken = {
        name
        for path in schema["paths"].values()
        for one in path.values()
        for name in (
            *body_of(one)["properties"],
            *(parameter["name"] for parameter in one["parameters"]),
        )
    }
    assert taken >= NAMES.keys()


def test_a_body_that_is_described_is_taken(schema: Any, root: Caller) -> None:
    for path, operations in schema["paths"].items():
        if "post" not in operations:
            continue
        about = body_of(operations["post"])
        sent = dict.fromkeys([*about["properties"], "nothing"])
        said = root.post(path[1:].format(pool="proxy", name="revoke"), **sent).json()
        if said["error"] == "BadOption":  # all described names are known
            assert said["name"] == "nothing"
            assert all(name in said["detail"] for name in about["properties"])


def objects(schema: Any) -> Iterator[Any]:
    """Yield all object schemas in it."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for one in schema.values():
            yield from objects(one)


def test_a_generated_client_can_send_and_read_names_that_a_model_has(schema: Any) -> None:
    for path, operations in schema["paths"].items():
        for one in objects(operations):  # without either, typed clients allow no names
            assert one.get("properties") or one.get("additionalProperties") is True, path
    acquire = schema["paths"]["/pools/{pool}/acquire"]["post"]
    assert body_of(acquire)["properties"]["where"]["additionalProperties"] is True
    assert schema["components"]["schemas"]["Lease"]["properties"]["resource"]["additionalProperties"] is True


def test_only_an_operation_takes_names_that_are_not_described(schema: Any) -> None:
    for path, operations in schema["paths"].items():
        if "post" in operations:
            others = body_of(operations["post"])["additionalProperties"]
            assert others == path.endswith("/operations/{name}"), path


class Keyed(BaseAuthentication):
    """A project's own authentication without a header."""


class Bearer(TokenAuthentication):
    keyword = "Bearer"


def test_a_generated_client_is_told_how_to_log_in(schema: Any, root: Caller, monkeypatch: Any) -> None:
    assert schema["components"]["securitySchemes"] == {
        "SessionAuthentication": {"type": "apiKey", "in": "cookie", "name": "sessionid"},
        "BasicAuthentication": {"type": "http", "scheme": "basic"},
    }
    assert schema["security"] == [{"SessionAuthentication": []}, {"BasicAuthentication": []}]
    monkeypatch.setattr(OpenAPI, "authentication_classes", [Bearer, TokenAuthentication, Keyed])
    found = root.get("openapi").json()["components"]["securitySchemes"]
    assert found["Bearer"] == {"type": "http", "scheme": "bearer"}
    assert (found["TokenAuthentication"]["in"], found["TokenAuthentication"]["name"]) == (
        "header",
        "Authorization",
    )
    assert "Keyed" not in found


def test_an_answer_that_is_empty_or_no_json_is_described_so(schema: Any) -> None:
    released = schema["paths"]["/leases/release"]["post"]["responses"]
    metrics = schema["paths"]["/metrics"]["get"]["responses"]
    assert "content" not in released["204"]
    assert [*metrics["200"]["content"]] == ["text/plain"]
    assert [*released["409"]["content"]] == [*metrics["403"]["content"]] == ["application/json"]


def test_answers_are_what_is_described(schema: Any, root: Caller) -> None:
    new(Proxy)
    Stream.objects.create(name="oracle")
    schemas = schema["components"]["schemas"]
    for address, path, sent in (
        ("pools/proxy/acquire", "/pools/{pool}/acquire", {}),
        ("pools/proxy/acquire", "/pools/{pool}/acquire", {}),  # nothing is free
        ("locks/nightly/acquire", "/locks/{name}/acquire", {}),
        ("streams/oracle/submit", "/streams/{name}/submit", {"type": "note"}),
        ("streams/nothing/submit", "/streams/{name}/submit", {"type": "note"}),
        ("channels/news/publish", "/channels/{name}/publish", {"payload": 1}),
    ):
        answer = root.post(address, **sent)
        about = schema["paths"][path]["post"]["responses"][str(answer.status_code)]
        assert fits(answer.json(), about["content"]["application/json"]["schema"], schemas)
