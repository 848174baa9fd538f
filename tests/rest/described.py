"""Whether answers are as OpenAPI describes them."""

import re
from functools import cache
from typing import Any

from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator

from resourcepool.rest.schema import generating


@cache
def schema() -> Any:
    """Return the description of the API, in which no answer may have names that are not described."""
    with generating:
        return closed(SchemaGenerator(urlconf="project.urls").get_schema(public=True))


def closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    more = {"additionalProperties": False} if "properties" in schema else {}
    return {**more, **{name: closed(value) for name, value in schema.items()}}


def refuse_undescribed(answer: Any) -> None:
    """Raise ValidationError unless an answer of the API is described, if its URL and method are."""
    route = answer.resolver_match.route if answer.resolver_match else ""
    path = "/" + re.sub(r"<\w+:(\w+)>", r"{\1}", route).replace("{pk}", "{id}")
    described = schema()["paths"].get(path, {}).get(answer.request["REQUEST_METHOD"].lower())
    if described is None or "json" not in answer.get("Content-Type", "json"):
        return
    about = described["responses"].get(str(answer.status_code))
    if about is None:
        assert answer.status_code in (405, 406, 500), path  # errors of the framework and of the project
        return
    if not answer.content:
        assert "content" not in about, path
        return
    content = about["content"]["application/json"]["schema"]
    Draft202012Validator({**content, "components": schema()["components"]}).validate(answer.json())
