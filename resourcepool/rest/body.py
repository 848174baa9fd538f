"""What a program sends: the parameters of an address, and a JSON object."""

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

NUL = "\0"  # text with it is text that PostgreSQL does not take


class LimitedJSONParser(JSONParser):
    """JSON of a limited length."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        """Return what was sent.

        Raises:
            RequestDataTooBig: it is longer than DATA_UPLOAD_MAX_MEMORY_SIZE.
            UnicodeEncodeError: it has half a surrogate pair, which is text that no database accepts, nor an answer.
        """
        if isinstance(stream, HttpRequest):
            stream = io.BytesIO(stream.body)  # which Django limits
        found = super().parse(stream, media_type, parser_context)
        json.dumps(found, ensure_ascii=False).encode()
        return found


def body(request: Request, allowed: Collection[str], needed: Collection[str] = ()) -> dict[str, Any]:
    """Return the JSON object that was sent.

    Raises:
        BadOption: it is no object, has another name than ``allowed`` and ``needed``, or lacks one of ``needed``.
        LengthRequired: see ``refuse_without_length``.
    """
    refuse_without_length(request._request)
    try:
        found = request.data
    except RequestDataTooBig:
        raise BadOption("body", Hidden(), because="it is too long") from None
    except (RecursionError, UnicodeEncodeError):  # lists in lists in lists
        found = None
    if not isinstance(found, dict):
        raise BadOption("body", Hidden(), because=f"a JSON object with: {listed([*needed, *allowed])}")
    for name in found:
        if name not in allowed and name not in needed:
            raise BadOption(
                name, Hidden(), because=f"no such name here; there are: {listed([*needed, *allowed])}"
            )
    for name in needed:
        if name not in found:
            raise BadOption(name, Hidden(), because="it is needed")
    return found


def refuse_without_length(request: HttpRequest) -> None:
    """Raise LengthRequired for a body without a Content-Length, which Django would take for an empty one.

    HTTP/1.1 sends such a body in chunks, and says so; HTTP/2 does not say so.
    """
    meta = request.META
    if str(meta.get("CONTENT_LENGTH", "")).isdecimal():
        return
    source = meta["wsgi.input"] if meta.get("wsgi.input_terminated") else request
    if "HTTP_TRANSFER_ENCODING" in meta or source.read(1):
        why = "its length is missing: send Content-Length, not Transfer-Encoding: chunked"
        raise LengthRequired("body", Hidden(), because=why)


def parameters(request: Request, allowed: Collection[str]) -> dict[str, str]:
    """Return the parameters of the address; raises BadOption for others than those allowed, and for NUL in one.

    Those of the framework are left out: it has read them.
    """
    sent: dict[str, str] = request.query_params.dict()
    found = {name: value for name, value in sent.items() if name in allowed or name not in of_framework()}
    for name, value in found.items():
        if name not in allowed:
            raise BadOption(name, Hidden(), because=f"no such parameter here; there are: {listed(allowed)}")
        if NUL in value:
            raise BadOption(name, value, because="it has a NUL character")
    return found


def of_framework() -> Collection[str]:
    """Return the parameters that Django REST framework takes in any address, as the project has set it up."""
    versioning: Any = api_settings.DEFAULT_VERSIONING_CLASS
    has_version = versioning is not None and issubclass(versioning, QueryParameterVersioning)
    return (api_settings.URL_FORMAT_OVERRIDE, *([api_settings.VERSION_PARAM] if has_version else []))


def listed(names: Collection[str]) -> str:
    return ", ".join(names) or "none"
