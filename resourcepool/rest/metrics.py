"""The numbers of the dashboard for Prometheus, read from the database at each scrape."""

from collections.abc import Iterable, Iterator
from typing import Any

from django.http import HttpResponse
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from rest_framework.request import Request

from resourcepool.resources.registry import resource_models
from resourcepool.rest.refusals import has_permission
from resourcepool.rest.view import View
from resourcepool.status.registry import systems
from resourcepool.status.resources.pools import FIGURES, PoolStatus, pools
from resourcepool.status.system import Figure


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
    yield from gauges("pool", FIGURES, statuses, name="label")
    for system in systems():
        if all(has_permission(request, "view", model) for model in system.viewed):
            yield from gauges(system.word, system.figures, system.read())


def by_state(statuses: Iterable[PoolStatus]) -> GaugeMetricFamily:
    """Return the number of resources of each pool in each state."""
    family = GaugeMetricFamily("resourcepool_pool_resources", "Resources by state.", labels=["pool", "state"])
    for pool in statuses:
        for state, count in pool.counts.items():
            family.add_metric([pool.label, state.value], count)
    return family


def gauges(
    word: str, figures: Iterable[Figure], statuses: Any, name: str = "name"
) -> Iterator[GaugeMetricFamily]:
    """Yield a gauge for each figure that has one, with its values.

    Args:
        word: part of the name of each gauge, and the label with the name of the status.
        statuses: the statuses; or one status, whose gauges have no label.
        name: the attribute of a status with its name.
    """
    is_one = not isinstance(statuses, Iterable)
    rows = [statuses] if is_one else list(statuses)
    for figure in figures:
        if figure.gauge:
            family = GaugeMetricFamily(
                f"resourcepool_{word}_{figure.gauge[0]}", figure.gauge[1], labels=[] if is_one else [word]
            )
            for row in rows:
                if (number := figure.of(row)) is not None:
                    family.add_metric([] if is_one else [getattr(row, name)], number)
            yield family
