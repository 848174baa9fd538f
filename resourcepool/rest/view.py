"""The base classes of all views of the API."""

import inspect
import logging
from collections.abc import Collection, Mapping
from importlib.util import find_spec
from typing import Any

from django.db import DataError, InterfaceError, OperationalError, connections, transaction
from django.http import HttpRequest, HttpResponseBase
from django.utils import translation
from django.views.decorators.debug import sensitive_variables
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import IsAuthenticated
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.schemas.inspectors import ViewInspector
from rest_framework.views import APIView

from resourcepool.exceptions import DatabaseUnavailable, ResourcePoolError
from resourcepool.rest import serializers
from resourcepool.rest.body import NUL, LimitedJSONParser, body, parameters
from resourcepool.rest.errors import STATUSES, NotFound, error_response

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
