"""The URLs of the API. They have no trailing slash, because names (of locks, for example) may contain slashes."""

from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response

from resourcepool.rest.leases import Acquire, AcquireLock, Quarantine, Release, Renew
from resourcepool.rest.metrics import Metrics
from resourcepool.rest.openapi import OpenAPI
from resourcepool.rest.operations import Operate, Operations
from resourcepool.rest.status import (
    NAMED_SYSTEMS,
    Alarms,
    Leases,
    LockDetail,
    Locks,
    PoolDetail,
    Pools,
    QueueGroups,
    Queues,
    ResourceDetail,
    Resources,
    SystemDetail,
    SystemList,
)
from resourcepool.rest.submission import Publish, Submit
from resourcepool.rest.view import View


class Index(View):
    """``GET`` of the root: all URLs."""

    schema = None

    def get(self, request: Request) -> Response:
        return Response(
            {"addresses": [str(pattern.pattern) for pattern in urlpatterns if str(pattern.pattern)]}
        )


app_name = "resourcepool_api"
described = (
    path("pools", Pools.as_view()),
    path("pools/<str:pool>", PoolDetail.as_view()),
    path("pools/<str:pool>/acquire", Acquire.as_view()),
    path("pools/<str:pool>/leases", Leases.as_view()),
    path("pools/<str:pool>/resources", Resources.as_view()),
    path("pools/<str:pool>/resources/<path:pk>", ResourceDetail.as_view()),
    path("pools/<str:pool>/operations", Operations.as_view()),
    path("pools/<str:pool>/operations/<str:name>", Operate.as_view()),
    path("leases/renew", Renew.as_view()),
    path("leases/release", Release.as_view()),
    path("leases/quarantine", Quarantine.as_view()),
    path("locks", Locks.as_view()),
    path("locks/<path:name>/acquire", AcquireLock.as_view(read_view=LockDetail.as_view())),
    path("locks/<path:name>", LockDetail.as_view()),
    path("queues", QueueGroups.as_view()),
    path("queues/<path:name>", Queues.as_view()),
    path("streams/<path:name>/submit", Submit.as_view(read_view=SystemDetail.as_view(kind="streams"))),
    path("channels/<path:name>/publish", Publish.as_view(read_view=SystemDetail.as_view(kind="channels"))),
    *(path(kind, SystemList.as_view(kind=kind)) for kind in NAMED_SYSTEMS),
    *(path(f"{kind}/<path:name>", SystemDetail.as_view(kind=kind)) for kind in NAMED_SYSTEMS),
    path("alarms", Alarms.as_view()),
    path("metrics", Metrics.as_view()),
)
urlpatterns = [path("", Index.as_view()), *described, path("openapi", OpenAPI.as_view(patterns=described))]
