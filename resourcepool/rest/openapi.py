"""The URL that describes the API."""

from importlib.util import find_spec

from django.urls import URLPattern
from rest_framework.request import Request
from rest_framework.response import Response

from resourcepool.exceptions import Hidden
from resourcepool.rest.errors import NotFound
from resourcepool.rest.view import View

INSTALL = "pip install 'django-resourcepool[openapi]'"


class OpenAPI(View):
    """``GET openapi``: this API as OpenAPI, for client generators and documentation pages; needs drf-spectacular."""

    patterns: tuple[URLPattern, ...] = ()
    schema = None

    def get(self, request: Request) -> Response:
        if find_spec("drf_spectacular") is None:
            raise NotFound("openapi", Hidden(), because=f"drf-spectacular is not installed: {INSTALL}")
        from resourcepool.rest.schema import document

        return Response(document(self.patterns, request))
