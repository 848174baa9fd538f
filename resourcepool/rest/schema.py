"""The API as OpenAPI, by drf-spectacular, from the declarations of the views. Only this module imports it."""

import re
from collections.abc import Iterable
from dataclasses import is_dataclass
from inspect import isclass
from threading import Lock
from typing import Any

from django.urls import URLPattern
from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.request import Request

from resourcepool.documentation import documented
from resourcepool.rest.answers import serializer, serializer_of
from resourcepool.rest.errors import STATUSES
from resourcepool.rest.serializers import Error

JSON = "application/json"
ONLY_POST = (409, 411, 415, 423)  # statuses

# drf-spectacular looks its classes up when they are first used; two threads that do so at once fail.
generating = Lock()


class ViewSchema(AutoSchema):
    """Describes a view of this API."""

    view: Any

    def get_operation_id(self) -> str:
        path = re.sub(self.path_prefix, "", self.path)
        return "_".join([self.method.lower(), *re.findall(r"\w+", path)])

    def get_summary(self) -> str:
        return (self.view.__doc__ or "").split(": ", 1)[-1].strip()

    def get_description(self) -> str:  # type: ignore[override]
        return ""

    def get_override_parameters(self) -> list[Any]:
        query = self.view.query_serializer
        in_path = [
            OpenApiParameter(name, str, OpenApiParameter.PATH) for name in re.findall(r"{(\w+)}", self.path)
        ]
        return [*in_path, *([query] if query.names() else [])]

    def get_request_serializer(self) -> Any:
        return self.view.request_serializer

    def get_response_serializers(self) -> Any:
        errors = OpenApiResponse(Error, f"See {documented('reference/rest', 'errors')}.")
        return {
            **{
                (status, self.view.media_type): OpenApiResponse(self._answer(answer), "Done.")
                for status, answer in self.view.get_responses().items()
            },
            **{
                (status, JSON): errors
                for status in sorted({401, 403, 415, *STATUSES.values()})
                if self.method == "POST" or status not in ONLY_POST
            },
        }

    def _answer(self, answer: Any) -> Any:
        """Return the serializer of an answer, see ``View.responses``."""
        if isinstance(answer, dict):
            name = "".join(part.title() for part in self.get_operation_id().split("_"))
            return serializer(f"{name}Response", answer)
        return serializer_of(answer) if isclass(answer) and is_dataclass(answer) else answer


class RequestExtension(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Says whether a body may have other fields than those that are described."""

    target_class = "resourcepool.rest.serializers.Request"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> Any:
        schema = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        return {**schema, "additionalProperties": self.target.allows_other_fields}


def document(patterns: Iterable[URLPattern], request: Request) -> dict[str, Any]:
    """Return the OpenAPI document of these URLs, relative to that of the request."""
    generator: Any = SchemaGenerator
    with generating:
        described = generator(patterns=list(patterns)).get_schema(request=request, public=True)
    server = {"url": request.path.removesuffix("/openapi")}
    return {**described, "info": {"title": "resourcepool", "version": "1"}, "servers": [server]}
