"""The API as OpenAPI 3.1, out of what the views declare: for generators of clients, and pages that show it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.conf import settings
from django.urls import URLPattern
from rest_framework.authentication import SessionAuthentication
from rest_framework.request import Request
from rest_framework.response import Response

from resourcepool.resources.strategy import STRATEGIES
from resourcepool.rest.errors import STATUSES
from resourcepool.rest.leases import MAX_TIMEOUT
from resourcepool.rest.status import MAX_LIMIT
from resourcepool.rest.view import JSON, View

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
TRUTH: Schema = {"type": "boolean"}
SECONDS: Schema = {"type": "number", "minimum": 0, "description": "Seconds."}
OBJECT: Schema = {
    "type": "object",
    "additionalProperties": True,
}  # or typed clients could send and read no name
# A name means the same wherever it is sent; what is not here is text.
NAMES: Mapping[str, Schema] = {
    "timeout": {**SECONDS, "maximum": MAX_TIMEOUT, "default": 0, "description": "Seconds to wait in line."},
    "ttl": {**SECONDS, "description": "Seconds that the lease lasts after each renewal."},
    "cooldown": {**SECONDS, "description": "Seconds that the resource rests after the release."},
    "max_hold": {**SECONDS, "description": "Seconds after which it is not renewed any more."},
    "priority": {"type": "integer", "default": 0, "description": "The lowest is served first."},
    "strategy": {**TEXT, "enum": [*STRATEGIES]},
    "where": {**OBJECT, "description": "Fields of the model and the values that will do."},
    "request_id": {
        **TEXT,
        "maxLength": 64,
        "description": "Sent again with it, a request is the same request.",
    },
    "lease": {**TEXT, "description": "The token in the answer to acquire."},
    "ids": {"type": "array", "items": {}, "description": "Primary keys."},
    "all": TRUTH,
    "dry_run": TRUTH,
    "params": OBJECT,
    "payload": {},
    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": MAX_LIMIT},
    "after": {**TEXT, "description": "The after of the page before."},
    "tag": {"type": "array", "items": TEXT, "description": "All of them."},
}
NO_CONTENT = 204  # a status
OF_ACTS = (409, 411, 423)  # statuses that no reading has
LEASE: Schema = {
    "type": "object",
    "properties": {
        "lease": NAMES["lease"],
        "pool": TEXT,
        "id": {},
        "fence": {"type": "integer"},
        "holder": TEXT,
        "ttl": SECONDS,
        "expires_in": {**SECONDS, "description": "Seconds for which it can be relied on without a renewal."},
        "resource": OBJECT,
    },
    "required": ["lease", "pool", "id", "fence", "holder", "ttl", "expires_in"],
}
ERROR: Schema = {
    "type": "object",
    "properties": {"error": TEXT, "detail": TEXT, "name": TEXT},
    "required": ["error", "detail"],
}


class OpenAPI(View):
    """``GET openapi``: this API as OpenAPI 3.1."""

    patterns: tuple[URLPattern, ...] = ()

    def get(self, request: Request) -> Response:
        schemes = self.schemes()
        return Response(
            {
                "openapi": "3.1.0",
                "info": {"title": "resourcepool", "version": "1"},
                "servers": [{"url": request.path.removesuffix("/openapi")}],
                "paths": dict(map(path_of, self.patterns)),
                "security": [{name: []} for name in schemes],
                "components": {"schemas": {"Lease": LEASE, "Error": ERROR}, "securitySchemes": schemes},
            }
        )

    def schemes(self) -> dict[str, Schema]:
        """Return the project's ways to log in, by the names of their classes, as far as they say what they are."""
        found = {type(one).__name__: scheme_of(one, self.request) for one in self.get_authenticators()}
        return {name: scheme for name, scheme in found.items() if scheme}


def scheme_of(way: Any, request: Request) -> Schema:
    """Return how a client says who it is, by what the class of authentication answers where nobody is logged in."""
    if isinstance(way, SessionAuthentication):
        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME}
    word = (way.authenticate_header(request) or "").partition(" ")[0]
    if word.lower() in ("basic", "bearer"):
        return {"type": "http", "scheme": word.lower()}
    about = f'"{word} ", and the token'
    return {"type": "apiKey", "in": "header", "name": "Authorization", "description": about} if word else {}


def path_of(pattern: URLPattern) -> tuple[str, Schema]:
    """Return the address of a pattern, and what can be done there."""
    callback: Any = pattern.callback
    view: type[View] = callback.view_class
    address = re.sub(r"<\w+:(\w+)>", r"{\1}", str(pattern.pattern))
    method = "post" if hasattr(view, "post") else "get"
    return f"/{address}", {method: operation_of(view, address, method)}


def operation_of(view: type[View], address: str, method: str) -> Schema:
    """Return what the view does at this address."""
    found: Schema = {
        "operationId": "_".join([method, *re.findall(r"\w+", address)]),
        "summary": (view.__doc__ or "").split(": ", 1)[-1].strip(),
        "parameters": [*parameters_of(view, address)],
        "responses": dict(responses_of(view, method)),
    }
    if method == "post":
        names = (*view.required_fields, *view.optional_fields)
        about: Schema = {
            "type": "object",
            "properties": properties_of(names),
            "required": [*view.required_fields],
        }
        about["additionalProperties"] = view.allows_other_fields
        found["requestBody"] = {
            "required": bool(view.required_fields),
            "content": {JSON: {"schema": about}},
        }
    return found


def parameters_of(view: type[View], address: str) -> Iterator[Schema]:
    """Yield the parameters in the address, and those after it."""
    for name in re.findall(r"{(\w+)}", address):
        yield {"name": name, "in": "path", "required": True, "schema": TEXT}
    for name, schema in properties_of(view.query_parameters).items():
        yield {"name": name, "in": "query", "schema": schema}


def responses_of(view: type[View], method: str) -> Iterator[tuple[str, Schema]]:
    """Yield the answers by status; the errors are the same everywhere."""
    for status, schema in view.responses.items():
        yield str(status), answer("Done.", schema, "" if status == NO_CONTENT else view.media_type)
    for status in sorted({401, 403, *STATUSES.values()}):
        if method == "post" or status not in OF_ACTS:
            yield str(status), answer("See docs/rest.md.", "Error")


def answer(about: str, schema: str, media_type: str = JSON) -> Schema:
    """Return an answer of this ``media_type``; "": it is empty."""
    content = {"$ref": f"#/components/schemas/{schema}"} if schema else {}
    return {"description": about, **({"content": {media_type: {"schema": content}}} if media_type else {})}


def properties_of(names: Iterable[str]) -> dict[str, Schema]:
    return {name: NAMES.get(name, TEXT) for name in names}
