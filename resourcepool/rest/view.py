"""What all views of the API share: who may call, how a body is read, how errors are answered."""

import io
import json
import logging
from collections.abc import Collection, Mapping
from typing import Any

from django.contrib.auth import get_permission_codename
from django.core.exceptions import RequestDataTooBig
from django.db import DatabaseError, InterfaceError, connections, transaction
from django.http import HttpRequest, HttpResponseBase
from django.utils import translation
from django.views.decorators.debug import sensitive_variables
from rest_framework.exceptions import PermissionDenied
from rest_framework.parsers import JSONParser
from rest_framework.permissions import IsAuthenticated
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from resourcepool.events import shown
from resourcepool.exceptions import (
    AcquireTimeout,
    BadOption,
    DatabaseUnavailable,
    Hidden,
    LeaseLost,
    ResourcePoolError,
)

logger = logging.getLogger(__name__)

RETRY_AFTER = 1  # seconds
STATUSES: Mapping[type[Exception], int] = {
    BadOption: 400,
    LeaseLost: 409,
    AcquireTimeout: 423,
    DatabaseUnavailable: 503,
    ResourcePoolError: 409,
}
LATER = (423, 503)  # statuses after which to try again


class Body(JSONParser):
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


class View(APIView):
    """For those who are logged in as the project's DEFAULT_AUTHENTICATION_CLASSES say; JSON in and out, in English."""

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

    def handle_exception(self, exc: Exception) -> Response:
        """Return the answer to an error: its kind, and a sentence."""
        if isinstance(exc, DatabaseError | InterfaceError):
            logger.error("%s failed", type(self).__name__, exc_info=exc)
            exc = DatabaseUnavailable("the database does not answer as it should; the server's log says more")
        for kind, status in STATUSES.items():
            if isinstance(exc, kind):
                if kind is ResourcePoolError:  # a table is missing, a secret is unreadable
                    logger.warning("%s: %s", type(exc).__name__, exc)
                return refused(exc, status)
        return super().handle_exception(exc)


def refused(error: Exception, status: int) -> Response:
    data = {"error": type(error).__name__, "detail": shown(error)}
    if isinstance(error, BadOption):
        data["name"] = error.name
    answer = Response(data, status, headers={"Retry-After": str(RETRY_AFTER)} if status in LATER else None)
    answer._has_been_logged = True  # type: ignore[attr-defined]  # by Django: it happens all the time
    return answer


def body(request: Request, allowed: Collection[str], needed: Collection[str] = ()) -> dict[str, Any]:
    """Return the JSON object that was sent.

    Raises:
        BadOption: it is no object, has another name than ``allowed`` and ``needed``, or lacks one of ``needed``.
    """
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
            raise BadOption(name, None, because="it is needed")
    return found


def listed(names: Collection[str]) -> str:
    return ", ".join(names) or "none"


def require(request: Request, action: str, *models: Any) -> None:
    """Raise PermissionDenied unless the user has this permission ("view", "lease", "operate") for all models."""
    for model in models:
        if not may(request, action, model):
            raise PermissionDenied(f"this needs the permission {permission(action, model)}")


def may(request: Request, action: str, model: Any) -> bool:
    """Tell whether the user has this permission for the model."""
    return bool(request.user.has_perm(permission(action, model)))


def permission(action: str, model: Any) -> str:
    return f"{model._meta.app_label}.{get_permission_codename(action, model._meta)}"


def caller(request: Request) -> str:
    """Return who calls, for the history and as a holder's name: "ann@203.0.113.7 (api)"."""
    name = "".join(c if c.isprintable() and c != "#" else "?" for c in request.user.get_username())
    return f"{name[:30]}@{request.META.get('REMOTE_ADDR', '')[:39]} (api)"
