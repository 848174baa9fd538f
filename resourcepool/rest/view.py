"""What all views of the API share."""

import logging
from collections.abc import Mapping
from typing import Any

from django.db import InterfaceError, OperationalError, connections, transaction
from django.http import HttpRequest, HttpResponseBase
from django.utils import translation
from django.views.decorators.debug import sensitive_variables
from rest_framework.permissions import IsAuthenticated
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response
from rest_framework.views import APIView

from resourcepool.exceptions import DatabaseUnavailable, ResourcePoolError
from resourcepool.rest.body import Body, body, parameters
from resourcepool.rest.errors import STATUSES, refused

logger = logging.getLogger(__name__)


class View(APIView):
    """For those who are logged in as the project's DEFAULT_AUTHENTICATION_CLASSES say; JSON in and out, in English."""

    query: tuple[str, ...] = ()  # the parameters that its address takes
    takes: tuple[str, ...] = ()  # the names that its body may have,
    needs: tuple[str, ...] = ()  # and those that it must have
    answers: Mapping[int, str] = {
        200: ""
    }  # the status of success: what is in the answer, as ``schema`` calls it

    permission_classes = (IsAuthenticated,)
    parser_classes = (Body,)
    renderer_classes = (JSONRenderer,)

    @classmethod
    def as_view(cls, **initial: Any) -> Any:
        view = super().as_view(**initial)
        for alias in connections:  # what is granted counts at once, whatever ATOMIC_REQUESTS says
            transaction.non_atomic_requests(using=alias)(view)
        return view

    @sensitive_variables()  # here, and in all that it calls: tokens, and the secrets of what is leased
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        request.encoding = "utf-8"  # as JSON is, whatever the request says: "zlib" would blow up a body
        with translation.override("en"):
            answer = super().dispatch(request, *args, **kwargs)
            if isinstance(answer, Response):
                answer.render()
        answer["Cache-Control"] = "no-store"  # it may contain a token, or the secret that was leased
        return answer

    def asked(self) -> dict[str, str]:
        """Return the parameters of the address; raises BadOption for others than ``query``."""
        return parameters(self.request, self.query)

    def sent(self) -> dict[str, Any]:
        """Return the JSON object that was sent; raises BadOption, as ``body`` does."""
        return body(self.request, self.takes, self.needs)

    def handle_exception(self, exc: Exception) -> Response:
        """Return the answer to an error: its kind, and a sentence."""
        if isinstance(exc, OperationalError | InterfaceError):
            logger.error("%s failed", type(self).__name__, exc_info=exc)
            exc = DatabaseUnavailable("the database does not answer as it should; the server's log says more")
        for kind, status in STATUSES.items():
            if isinstance(exc, kind):
                if kind is ResourcePoolError:  # a table is missing, a secret is unreadable
                    logger.warning("%s: %s", type(exc).__name__, exc)
                return refused(exc, status)
        answer = super().handle_exception(exc)
        if isinstance(answer.data, dict):  # unless the project's EXCEPTION_HANDLER made something else
            answer.data = {"error": type(exc).__name__, **answer.data}
        return answer
