"""What all views of the API share."""

import inspect
import logging
from collections.abc import Collection, Mapping
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
from rest_framework.views import APIView

from resourcepool.exceptions import DatabaseUnavailable, ResourcePoolError
from resourcepool.rest.body import NUL, LimitedJSONParser, body, parameters
from resourcepool.rest.errors import STATUSES, NotFound, error_response

JSON = "application/json"

logger = logging.getLogger(__name__)


class View(APIView):
    """For those who are logged in as the project's DEFAULT_AUTHENTICATION_CLASSES say; JSON in and out, in English."""

    query_parameters: tuple[str, ...] = ()  # the parameters that its address takes
    optional_fields: tuple[str, ...] = ()  # the names that its body may have,
    required_fields: tuple[str, ...] = ()  # and those that it must have
    allows_other_fields = False  # whether there may be others, which depend on the address
    # the status of success: what is in the answer, as ``schema`` calls it; and what kind of text that is
    responses: Mapping[int, str] = {200: ""}
    media_type = JSON
    parameters: Mapping[str, Any]  # the parameters that the address has

    permission_classes = (IsAuthenticated,)
    parser_classes = (LimitedJSONParser,)
    renderer_classes = (JSONRenderer,)
    versioning_class = None  # the project's versions are of its own API
    schema = None  # nor is it in the project's schema: it has its own, see ``schema``

    @classmethod
    def as_view(cls, **initial: Any) -> Any:
        view = super().as_view(**initial)
        for alias in connections:  # what is granted counts at once, whatever ATOMIC_REQUESTS says
            transaction.non_atomic_requests(using=alias)(view)
        return view

    @sensitive_variables()  # here, and in all that it calls: tokens, and the secrets of what is leased
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        kwargs = {name: value for name, value in kwargs.items() if name in self.takes_from_address}
        request.encoding = "utf-8"  # as JSON is, whatever the request says: "zlib" would blow up a body
        with translation.override("en"):
            answer = super().dispatch(request, *args, **kwargs)
            if isinstance(answer, Response):
                answer.render()
        answer["Cache-Control"] = "no-store"  # it may contain a token, or the secret that was leased
        return answer

    @property
    def takes_from_address(self) -> Collection[str]:
        """The parts of its address; the project may have others before them, such as a version."""
        act: Any = getattr(self, "post", None) or getattr(self, "get", None)
        return inspect.signature(act).parameters

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse what no database stores, and parameters that the address does not take: they would do nothing."""
        super().initial(request, *args, **kwargs)
        for name, value in kwargs.items():
            if NUL in value:
                raise NotFound(name, value, because="no name has a NUL character")
        self.parameters = parameters(request, self.query_parameters)

    def perform_authentication(self, request: Request) -> None:
        """Take a name, token or session with NUL for unknown: PostgreSQL's driver raises an error, and does not ask."""
        try:
            super().perform_authentication(request)
        except (ValueError, DataError) as error:
            if "NUL" not in str(error):
                raise
            raise AuthenticationFailed("no user has a NUL character in what it is known by") from None

    def read_body(self) -> dict[str, Any]:
        """Return the JSON object that was sent; raises BadOption, as ``body`` does."""
        return body(self.request, self.optional_fields, self.required_fields)

    def handle_exception(self, exc: Exception) -> Response:
        """Return the answer to an error: its kind, and a sentence."""
        if isinstance(exc, OperationalError | InterfaceError):
            # One line: in an outage each request says so.
            logger.error("%s: %s", type(self).__name__, " ".join(str(exc).split()))
            exc = DatabaseUnavailable("the database does not answer as it should; the server's log says more")
        for kind, status in STATUSES.items():
            if isinstance(exc, kind):
                if kind is ResourcePoolError:  # a table is missing, a secret is unreadable
                    logger.warning("%s: %s", type(exc).__name__, exc)
                return error_response(exc, status)
        answer = super().handle_exception(exc)
        if isinstance(answer.data, dict):  # unless the project's EXCEPTION_HANDLER made something else
            answer.data = {"error": type(exc).__name__, **answer.data}
        return answer


class ActionView(View):
    """What is done to something by its name; at the same address one reads what is called so: a lock "a/acquire"."""

    read_view: Any = None  # the view of such things

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method not in ("GET", "HEAD"):
            return super().dispatch(request, *args, **kwargs)
        act = request.path.rpartition("/")[2]
        answer: HttpResponseBase = self.read_view(request, name=f"{kwargs['name']}/{act}")
        return answer
