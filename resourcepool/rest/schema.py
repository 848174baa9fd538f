"""The API as OpenAPI, by drf-spectacular, from the declarations of the views. Only this module imports it.

Answers are described by the dataclasses that ``as_data`` returns as JSON.
"""

import datetime
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, partial
from inspect import isclass
from threading import Lock
from types import MappingProxyType, NoneType
from typing import Any, get_args, get_origin, get_type_hints

from django.urls import URLPattern
from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.request import Request
from rest_framework.serializers import (
    BooleanField,
    CharField,
    ChoiceField,
    DateTimeField,
    DictField,
    Field,
    FloatField,
    IntegerField,
    JSONField,
    ListField,
    Serializer,
)

from resourcepool.documentation import documented
from resourcepool.rest.refusals import STATUSES
from resourcepool.rest.serializers import Error

JSON = "application/json"
ONLY_POST = (409, 411, 415, 423)  # statuses
AnyField = Field[Any, Any, Any, Any]
SCALARS: Mapping[Any, Callable[..., AnyField]] = {
    str: partial(CharField, allow_blank=True),
    int: IntegerField,
    float: FloatField,
    bool: BooleanField,
    datetime.datetime: DateTimeField,
    Any: JSONField,
}
ROW: Mapping[str, Any] = {"pool": str, "id": Any, "resource": str}  # of a field ``row``, see ``as_data``


def serializer(
    name: str, hints: Mapping[str, Any], about: str = "", texts: Mapping[str, str] = MappingProxyType({})
) -> type[Serializer[Any]]:
    """Return a serializer with a field for each of these type hints.

    Args:
        about: what it is.
        texts: {field: what it means}.
    """
    described = {field: field_of(hint, help_text=texts.get(field)) for field, hint in hints.items()}
    return type(name, (Serializer,), {"__doc__": about, **described})


@cache
def serializer_of(dataclass: Any) -> type[Serializer[Any]]:
    """Return the serializer of a dataclass, with the fields that ``as_data`` returns."""
    about = inspect.cleandoc(dataclass.__doc__)
    hints, texts = get_type_hints(dataclass), attribute_texts(about)
    shown: dict[str, Any] = {}
    for field in fields(dataclass):
        shown |= ROW if field.name == "row" else {field.name: hints[field.name]}
    for name in getattr(dataclass, "ALSO", ()):
        getter = getattr(dataclass, name).fget
        shown[name], texts[name] = get_type_hints(getter)["return"], inspect.cleandoc(getter.__doc__)
    return serializer(dataclass.__name__, shown, about.partition("\n\n")[0], texts)


def field_of(hint: Any, **options: Any) -> AnyField:
    origin, args = get_origin(hint), get_args(hint)
    if NoneType in args:
        (hint,) = (one for one in args if one is not NoneType)
        return field_of(hint, allow_null=True, **options)
    if origin in (list, tuple, Sequence):
        return ListField(child=field_of(args[0]), **options)
    if origin in (dict, Mapping):
        return DictField(child=field_of(args[1]), **options)
    if inspect.isclass(hint) and is_dataclass(hint):
        return serializer_of(hint)(**options)
    if issubclass(hint, Enum):
        return ChoiceField([(one.value, getattr(one, "label", one.value)) for one in hint], **options)
    field: Callable[..., AnyField] = hint if issubclass(hint, Serializer) else SCALARS[hint]
    return field(**options)


def attribute_texts(about: str) -> dict[str, str]:
    """Return {name: text} of the attributes in a docstring, each also of those that follow it as "``name``: text"."""
    texts: dict[str, str] = {}
    attributes = about.partition("\nAttributes:\n")[2]
    for names, text in re.findall(r"^    (\w+(?:, \w+)*): (.*(?:\n     +.*)*)", attributes, re.MULTILINE):
        first, *others = re.split(r"[;.] ``(\w+)``: ", re.sub(r"\bNone\b", "null", " ".join(text.split())))
        texts |= dict.fromkeys(names.split(", "), first)
        texts |= zip(others[::2], others[1::2], strict=True)
    return texts


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
