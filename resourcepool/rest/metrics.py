"""The numbers of the dashboard for Prometheus, read from the database at each scrape."""

from collections.abc import Iterable, Iterator
from typing import Any

from django.http import HttpResponse
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from rest_framework.request import Request

from resourcepool.locks.models import Lock as LockRow
from resourcepool.locks.models import RWLockPermit, SemaphorePermit
from resourcepool.resources.registry import resource_models
from resourcepool.rest.access import has_permission
from resourcepool.rest.gauges import GAUGE_GROUPS, LOCK_GAUGES, POOL_GAUGES, GaugeGroup
from resourcepool.rest.view import View
from resourcepool.status.locks.summary import summary
from resourcepool.status.pools import PoolStatus, pools


class Metrics(View):
    """``GET metrics``: the metrics of everything that the caller may view."""

    responses = {200: str}
    media_type = "text/plain"

    def get(self, request: Request) -> HttpResponse:
        registry = CollectorRegistry()
        registry.register(_Collector(list(families(request))))
        return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_PLAIN_0_0_4)

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """Accept any media type, since the metrics are not JSON; errors are."""
        return super().perform_content_negotiation(request, force=True)


class _Collector:
    def __init__(self, gauges: list[GaugeMetricFamily]) -> None:
        self._gauges = gauges

    def collect(self) -> list[GaugeMetricFamily]:
        """Return the gauges, for ``prometheus_client``."""
        return self._gauges


def families(request: Request) -> Iterator[GaugeMetricFamily]:
    """Yield the gauges of everything that the caller may view."""
    visible = [model for model in resource_models() if has_permission(request, "view", model)]
    statuses = pools(visible)
    yield by_state(statuses)
    for gauges in (GaugeGroup("pool", (), lambda: statuses, POOL_GAUGES, "label"), *GAUGE_GROUPS):
        if all(has_permission(request, "view", model) for model in gauges.needed):
            yield from gauges.families()
    if all(has_permission(request, "view", model) for model in (LockRow, SemaphorePermit, RWLockPermit)):
        locks = summary()
        for name, about, value in LOCK_GAUGES:
            yield GaugeMetricFamily(f"resourcepool_locks_{name}", about, value=value(locks))


def by_state(statuses: Iterable[PoolStatus]) -> GaugeMetricFamily:
    """Return the number of resources of each pool in each state."""
    family = GaugeMetricFamily("resourcepool_pool_resources", "Resources by state.", labels=["pool", "state"])
    for pool in statuses:
        for state, count in pool.counts.items():
            family.add_metric([pool.label, state.value], count)
    return family
