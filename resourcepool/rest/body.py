"""Reads the input of a request: its query parameters, and a JSON object."""

import io
import json
from collections.abc import Collection
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.settings import api_settings
from rest_framework.versioning import QueryParameterVersioning

from resourcepool.exceptions import BadOption, Hidden
from resourcepool.rest.errors import LengthRequired

NUL = "\0"  # PostgreSQL refuses text with it


class LimitedJSONParser(JSONParser):
    """JSON of a limited length."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        """Return the data of the body.

        Raises:
            RequestDataTooBig: it is longer than DATA_UPLOAD_MAX_MEMORY_SIZE.
            UnicodeEncodeError: it has a lone surrogate, which neither a database nor a response can contain.
        """
        if isinstance(stream, HttpRequest):
            stream = io.BytesIO(stream.body)  # Django limits its length
        data = super().parse(stream, media_type, parser_context)
        json.dumps(data, ensure_ascii=False).encode()
        return data


def body(request: Request, allowed: Collection[str], needed: Collection[str] = ()) -> dict[str, Any]:
    """Return the JSON object in the body.

    Raises:
        BadOption: it is not an object, has a name that is not ``allowed``, or lacks one of ``needed``.
        LengthRequired: see ``refuse_without_length``.
    """
    refuse_without_length(request._request)
    try:
        data = request.data
    except RequestDataTooBig:
        raise BadOption("body", Hidden(), because="too long") from None
    except (RecursionError, UnicodeEncodeError):  # RecursionError: deeply nested lists
        data = None
    if not isinstance(data, dict):
        raise BadOption("body", Hidden(), because=f"a JSON object with: {listed(allowed)}")
    for name in data:
        if name not in allowed:
            raise BadOption(name, Hidden(), because=f"unknown name; allowed: {listed(allowed)}")
    for name in needed:
        if name not in data:
            raise BadOption(name, Hidden(), because="required")
    return data


def refuse_without_length(request: HttpRequest) -> None:
    """Raise LengthRequired for a body without a Content-Length, which Django would treat as empty.

    HTTP/1.1 marks such a body as chunked; HTTP/2 does not mark it.
    """
    meta = request.META
    if str(meta.get("CONTENT_LENGTH", "")).isdecimal():
        return
    source = meta["wsgi.input"] if meta.get("wsgi.input_terminated") else request
    if "HTTP_TRANSFER_ENCODING" in meta or source.read(1):
        why = "its length is missing: send Content-Length, not Transfer-Encoding: chunked"
        raise LengthRequired("body", Hidden(), because=why)


def parameters(request: Request, allowed: Collection[str]) -> dict[str, str]:
    """Return the query parameters; raises BadOption for one that is not allowed, or has a NUL character.

    Those of Django REST framework are left out.
    """
    sent: dict[str, str] = request.query_params.dict()
    values = {
        name: value for name, value in sent.items() if name in allowed or name not in framework_parameters()
    }
    for name, value in values.items():
        if name not in allowed:
            raise BadOption(name, Hidden(), because=f"unknown parameter; allowed: {listed(allowed)}")
        if NUL in value:
            raise BadOption(name, value, because="it has a NUL character")
    return values


def framework_parameters() -> Collection[str]:
    """Return the query parameters that Django REST framework reads at any URL, by the project's settings."""
    versioning: Any = api_settings.DEFAULT_VERSIONING_CLASS
    has_version = versioning is not None and issubclass(versioning, QueryParameterVersioning)
    return (api_settings.URL_FORMAT_OVERRIDE, *([api_settings.VERSION_PARAM] if has_version else []))


def listed(names: Collection[str]) -> str:
    return ", ".join(names) or "none"
