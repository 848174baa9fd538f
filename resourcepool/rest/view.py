"""The base classes of all views of the API, and the input of a request: query parameters and a JSON object."""

import inspect
import io
import json
import logging
from collections.abc import Collection, Mapping
from importlib.util import find_spec
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.db import DataError, InterfaceError, OperationalError, connections, transaction
from django.http import HttpRequest, HttpResponseBase
from django.utils import translation
from django.views.decorators.debug import sensitive_variables
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.parsers import JSONParser
from rest_framework.permissions import IsAuthenticated
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.schemas.inspectors import ViewInspector
from rest_framework.settings import api_settings
from rest_framework.versioning import QueryParameterVersioning
from rest_framework.views import APIView

from resourcepool.exceptions import BadOption, DatabaseUnavailable, Hidden, ResourcePoolError
from resourcepool.rest import serializers
from resourcepool.rest.refusals import STATUSES, LengthRequired, NotFound, error_response

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


logger = logging.getLogger(__name__)


class OptionalSchema(ViewInspector):
    """Describes a view by drf-spectacular; None where that is not installed."""

    def __get__(self, instance: Any, owner: Any) -> Any:
        if find_spec("drf_spectacular") is None:
            return None
        from resourcepool.rest.schema import ViewSchema

        described = ViewSchema()
        described.view = instance
        return described


class View(APIView):
    """For callers authenticated by the project's DEFAULT_AUTHENTICATION_CLASSES; JSON in and out, in English."""

    query_serializer = request_serializer = serializers.Request  # the query parameters, and the body
    # {status of success: serializer of the answer, or a dataclass, or {name: type hint}; None: it has no body}
    responses: Mapping[int, Any]
    media_type = "application/json"
    parameters: Mapping[str, Any]  # the query parameters of the request

    permission_classes = (IsAuthenticated,)
    parser_classes = (LimitedJSONParser,)
    renderer_classes = (JSONRenderer,)
    versioning_class = None  # the project's versioning is for its own API
    schema = OptionalSchema()

    @classmethod
    def as_view(cls, **initial: Any) -> Any:
        view = super().as_view(**initial)
        for alias in connections:  # a lease must be committed at once, even with ATOMIC_REQUESTS
            transaction.non_atomic_requests(using=alias)(view)
        return view

    @sensitive_variables()  # tokens and secrets, here and in all functions that it calls
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        kwargs = {name: value for name, value in kwargs.items() if name in self.url_parameters}
        request.encoding = "utf-8"  # JSON is always UTF-8; "zlib" would decompress a body
        with translation.override("en"):
            response = super().dispatch(request, *args, **kwargs)
            if isinstance(response, Response):
                response.render()
        response["Cache-Control"] = "no-store"  # it may contain a token or a secret
        return response

    @property
    def url_parameters(self) -> Collection[str]:
        """The names of the view's URL parameters; the project may add others, such as a version."""
        method: Any = getattr(self, "post", None) or getattr(self, "get", None)
        return inspect.signature(method).parameters

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse NUL characters and unknown query parameters."""
        super().initial(request, *args, **kwargs)
        for name, value in kwargs.items():
            if NUL in value:
                raise NotFound(name, value, because="names cannot have a NUL character")
        self.parameters = parameters(request, self.query_serializer.names())

    def perform_authentication(self, request: Request) -> None:
        """Refuse credentials with a NUL character as unknown: PostgreSQL's driver raises an error for them."""
        try:
            super().perform_authentication(request)
        except (ValueError, DataError) as error:
            if "NUL" not in str(error):
                raise
            raise AuthenticationFailed("credentials cannot have a NUL character") from None

    def get_responses(self) -> Mapping[int, Any]:
        return self.responses

    def read_body(self) -> dict[str, Any]:
        """Return the JSON object in the body; raises BadOption, see ``body``."""
        return body(self.request, self.request_serializer.names(), self.request_serializer.required_names())

    def handle_exception(self, exc: Exception) -> Response:
        """Return the response to an error: its name, and a sentence."""
        if isinstance(exc, OperationalError | InterfaceError):
            # One line instead of a traceback: in an outage every request logs it.
            logger.error("%s: %s", type(self).__name__, " ".join(str(exc).split()))
            exc = DatabaseUnavailable("database error; see the log of the web server")
        for kind, status in STATUSES.items():
            if isinstance(exc, kind):
                if kind is ResourcePoolError:  # such as a missing table or an unreadable secret
                    logger.warning("%s: %s", type(exc).__name__, exc)
                return error_response(exc, status)
        response = super().handle_exception(exc)
        if isinstance(response.data, dict):  # the project's EXCEPTION_HANDLER may return anything
            response.data = {"error": type(exc).__name__, **response.data}
        return response


class ActionView(View):
    """An action on something with a name; a GET of the same URL reads the status of a name such as "a/acquire"."""

    read_view: Any = None  # the view for GET

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method not in ("GET", "HEAD"):
            return super().dispatch(request, *args, **kwargs)
        action = request.path.rpartition("/")[2]
        response: HttpResponseBase = self.read_view(request, name=f"{kwargs['name']}/{action}")
        return response
