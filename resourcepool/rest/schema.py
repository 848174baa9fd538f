"""The API as OpenAPI 3.1, from the declarations of the views: for client generators and documentation pages."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.conf import settings
from django.urls import URLPattern
from rest_framework.authentication import SessionAuthentication
from rest_framework.request import Request
from rest_framework.response import Response

from resourcepool.documentation import documented
from resourcepool.resources.strategy import STRATEGIES
from resourcepool.rest.errors import STATUSES
from resourcepool.rest.leases import MAX_TIMEOUT
from resourcepool.rest.status import MAX_LIMIT
from resourcepool.rest.view import JSON, View

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
BOOLEAN: Schema = {"type": "boolean"}
SECONDS: Schema = {"type": "number", "minimum": 0, "description": "Seconds."}
OBJECT: Schema = {
    "type": "object",
    "additionalProperties": True,  # for typed clients
}
# {field or parameter: schema}; a name means the same everywhere, and is text by default.
NAMES: Mapping[str, Schema] = {
    "timeout": {**SECONDS, "maximum": MAX_TIMEOUT, "default": 0, "description": "Seconds to wait in line."},
    "ttl": {**SECONDS, "description": "Seconds from each renewal to the end of the lease."},
    "cooldown": {**SECONDS, "description": "Seconds of cool-down after the release."},
    "max_hold": {**SECONDS, "description": "Seconds after which the lease cannot be renewed."},
    "priority": {"type": "integer", "default": 0, "description": "The lowest number is served first."},
    "strategy": {**TEXT, "enum": [*STRATEGIES]},
    "where": {**OBJECT, "description": "Fields of the model and their allowed values."},
    "request_id": {
        **TEXT,
        "maxLength": 64,
        "description": "Makes the request safe to repeat.",
    },
    "lease": {**TEXT, "description": "The token in the response to acquire."},
    "ids": {"type": "array", "items": {}, "description": "Primary keys."},
    "all": BOOLEAN,
    "dry_run": BOOLEAN,
    "params": OBJECT,
    "payload": {},
    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": MAX_LIMIT},
    "after": {**TEXT, "description": "The after of the previous page."},
    "tag": {"type": "array", "items": TEXT, "description": "Resources must have all of these tags."},
}
NO_CONTENT = 204  # status
ONLY_POST = (409, 411, 423)  # statuses
LEASE: Schema = {
    "type": "object",
    "properties": {
        "lease": NAMES["lease"],
        "pool": TEXT,
        "id": {},
        "fence": {"type": "integer"},
        "holder": TEXT,
        "ttl": SECONDS,
        "expires_in": {**SECONDS, "description": "Seconds for which the lease is valid without a renewal."},
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
        """Return the project's authentication schemes, by class name; unknown ones are left out."""
        schemes = {
            type(authentication).__name__: scheme_of(authentication, self.request)
            for authentication in self.get_authenticators()
        }
        return {name: scheme for name, scheme in schemes.items() if scheme}


def scheme_of(authentication: Any, request: Request) -> Schema:
    """Return the scheme of an authentication class, by its session or its WWW-Authenticate header; {} if unknown."""
    if isinstance(authentication, SessionAuthentication):
        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME}
    word = (authentication.authenticate_header(request) or "").partition(" ")[0]
    if word.lower() in ("basic", "bearer"):
        return {"type": "http", "scheme": word.lower()}
    about = f'"{word} ", and the token'
    return {"type": "apiKey", "in": "header", "name": "Authorization", "description": about} if word else {}


def path_of(pattern: URLPattern) -> tuple[str, Schema]:
    """Return the path of a URL pattern, and its operation."""
    callback: Any = pattern.callback
    view: type[View] = callback.view_class
    address = re.sub(r"<\w+:(\w+)>", r"{\1}", str(pattern.pattern))
    method = "post" if hasattr(view, "post") else "get"
    return f"/{address}", {method: operation_of(view, address, method)}


def operation_of(view: type[View], address: str, method: str) -> Schema:
    """Return the operation of the view at this path."""
    operation: Schema = {
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
        operation["requestBody"] = {
            "required": bool(view.required_fields),
            "content": {JSON: {"schema": about}},
        }
    return operation


def parameters_of(view: type[View], address: str) -> Iterator[Schema]:
    """Yield the path and query parameters."""
    for name in re.findall(r"{(\w+)}", address):
        yield {"name": name, "in": "path", "required": True, "schema": TEXT}
    for name, schema in properties_of(view.query_parameters).items():
        yield {"name": name, "in": "query", "schema": schema}


def responses_of(view: type[View], method: str) -> Iterator[tuple[str, Schema]]:
    """Yield the responses by status; the errors are the same everywhere."""
    for status, schema in view.responses.items():
        yield str(status), response_of("Done.", schema, "" if status == NO_CONTENT else view.media_type)
    for status in sorted({401, 403, *STATUSES.values()}):
        if method == "post" or status not in ONLY_POST:
            yield str(status), response_of(f"See {documented('reference/rest', 'errors')}.", "Error")


def response_of(about: str, schema: str, media_type: str = JSON) -> Schema:
    """Return a response of this ``media_type``; "" for an empty one."""
    content = {"$ref": f"#/components/schemas/{schema}"} if schema else {}
    return {"description": about, **({"content": {media_type: {"schema": content}}} if media_type else {})}


def properties_of(names: Iterable[str]) -> dict[str, Schema]:
    return {name: NAMES.get(name, TEXT) for name in names}
