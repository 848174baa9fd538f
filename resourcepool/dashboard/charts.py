"""The charts of a pool, as JSON for the browser, which draws them."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.db import connections, router
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.utils.formats import number_format
from django.views.decorators.http import require_safe

from resourcepool.dashboard.links import visible_models
from resourcepool.db.dialect import read_clock
from resourcepool.history.models import Sample
from resourcepool.status.resources.activity import ChartRange, Point, trend
from resourcepool.status.times import with_zone
from resourcepool.translation import gettext as _, gettext_lazy

# (title, series of it: (name, attribute of a point, name of its colour, how it is drawn))
CHARTS = (
    (
        gettext_lazy("In use"),
        (
            (gettext_lazy("Leased"), "leased", "leased", "area"),
            (gettext_lazy("Leased or free"), "capacity", "out", "line"),
        ),
    ),
    (gettext_lazy("Waiting"), ((gettext_lazy("Waiting"), "waiters", "draining", "area"),)),
    (gettext_lazy("Acquired per minute"), ((gettext_lazy("Acquired"), "acquired", "free", "area"),)),
    (gettext_lazy("Lost or expired"), ((gettext_lazy("Lost or expired"), "lost", "quarantined", "bars"),)),
)


def chart_range(request: HttpRequest) -> ChartRange:
    """Return the time range that the request names as ``span``; an hour by default."""
    name = request.GET.get("span", "")
    return ChartRange(name) if name in list(ChartRange) else ChartRange.HOUR


@require_safe
def charts(request: HttpRequest, *, site: AdminSite) -> HttpResponse:
    """Return the charts of the pool that the URL names as ``pool``: times in seconds since 1970, and values."""
    label = request.GET.get("pool", "")
    if label not in {model._meta.label for model in visible_models(site, request)}:
        raise PermissionDenied
    span = chart_range(request)
    points = trend(label, span)
    now = with_zone(read_clock(connections[router.db_for_read(Sample)])).timestamp()
    step = 60 * span.step
    times = [round(now) - step * (len(points) - 1 - index) for index in range(len(points))]
    return JsonResponse(
        {"times": times, "zone": timezone.get_current_timezone_name(), "charts": [*drawn(points)]}
    )


def drawn(points: Sequence[Point | None]) -> Iterator[dict[str, Any]]:
    """Yield each chart in which there is anything to see; None among ``points``: not sampled."""
    for title, series in CHARTS:
        lines = [
            {
                "name": str(name),
                "colour": colour,
                "style": style,
                "values": [None if point is None else getattr(point, column) for point in points],
            }
            for name, column, colour, style in series
        ]
        if any(line["values"] and any(line["values"]) for line in lines):
            yield {"title": str(title), "text": ". ".join(map(_in_words, lines)), "series": lines}


def _in_words(line: dict[str, Any]) -> str:
    """Return the last, lowest and highest value of a series in words."""
    known = [value for value in line["values"] if value is not None]
    if not known:
        return _("%(name)s: no data") % line
    values = {"last": known[-1], "low": min(known), "high": max(known)}
    shown = {name: number_format(value, None if value % 1 == 0 else 1) for name, value in values.items()}
    return _("%(name)s: %(last)s at the end, between %(low)s and %(high)s") % {"name": line["name"], **shown}
