"""The URLs of the API. They have no trailing slash, because names (of locks, for example) may contain slashes."""

from importlib.util import find_spec

from django.urls import URLPattern, path
from rest_framework.request import Request
from rest_framework.response import Response

from resourcepool.exceptions import Hidden
from resourcepool.rest import leases, operations, status
from resourcepool.rest.metrics import Metrics
from resourcepool.rest.refusals import NotFound
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


class Index(View):
    """``GET`` of the root: all URLs."""

    schema = None

    def get(self, request: Request) -> Response:
        return Response(
            {"addresses": [str(pattern.pattern) for pattern in urlpatterns if str(pattern.pattern)]}
        )


app_name = "resourcepool_api"
described = (
    path("pools", status.Pools.as_view()),
    path("pools/<str:pool>", status.PoolDetail.as_view()),
    path("pools/<str:pool>/acquire", leases.Acquire.as_view()),
    path("pools/<str:pool>/leases", status.Leases.as_view()),
    path("pools/<str:pool>/resources", status.Resources.as_view()),
    path("pools/<str:pool>/resources/<path:pk>", status.ResourceDetail.as_view()),
    path("pools/<str:pool>/operations", operations.Operations.as_view()),
    path("pools/<str:pool>/operations/<str:name>", operations.Operate.as_view()),
    path("leases/renew", leases.Renew.as_view()),
    path("leases/release", leases.Release.as_view()),
    path("leases/quarantine", leases.Quarantine.as_view()),
    path("locks", status.Locks.as_view()),
    path("locks/<path:name>/acquire", leases.AcquireLock.as_view(read_view=status.LockDetail.as_view())),
    path("locks/<path:name>", status.LockDetail.as_view()),
    path("queues", status.QueueGroups.as_view()),
    path("queues/<path:name>", status.Queues.as_view()),
    path(
        "streams/<path:name>/submit",
        operations.Submit.as_view(read_view=status.SystemDetail.as_view(kind="streams")),
    ),
    path(
        "channels/<path:name>/publish",
        operations.Publish.as_view(read_view=status.SystemDetail.as_view(kind="channels")),
    ),
    *(
        path(
            f"{kind}/<path:name>/{operation.name}",
            operations.OperateSystem.as_view(
                kind=kind, operation=operation, read_view=status.SystemDetail.as_view(kind=kind)
            ),
        )
        for kind, system in status.NAMED_SYSTEMS.items()
        for operation in system.operations
    ),
    *(path(kind, status.SystemList.as_view(kind=kind)) for kind in status.NAMED_SYSTEMS),
    *(path(f"{kind}/<path:name>", status.SystemDetail.as_view(kind=kind)) for kind in status.NAMED_SYSTEMS),
    path("alarms", status.Alarms.as_view()),
    path("metrics", Metrics.as_view()),
)
urlpatterns = [path("", Index.as_view()), *described, path("openapi", OpenAPI.as_view(patterns=described))]
