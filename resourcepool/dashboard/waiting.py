"""The page of all waiters: since when, in which place, how long it may take, and why they are not served."""

from collections.abc import Sequence

from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from resourcepool.dashboard.access import can_view, visible_models
from resourcepool.dashboard.links import LEASED, Button, Links
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.waiting import Lines, Waiting
from resourcepool.translation import gettext as _

ENDING_WAITS = ("revoke", "revoke-holder", "remove")  # operations, as far as its kind of lock has them


@require_safe
def waiting(request: HttpRequest, *, site: AdminSite) -> HttpResponse:
    """Show a page of the waiters that the user may view; ``of`` in the URL: only this pool or lock."""
    request.current_app = site.name
    models = visible_models(site, request)
    kinds = [kind for kind in LockKind if can_view(site, request, kind.model)]
    if not models and not kinds:
        raise PermissionDenied
    of, number = request.GET.get("of", ""), _number(request.GET.get("page", ""))
    page, links = Lines(models, kinds, of).page(number), Links(site, request)
    links.load((one.model, one.key) for one in page.waiters if one.key)
    query = {"of": of} if of else {}
    context = {
        **site.each_context(request),
        "title": _("Who waits, and why"),
        "of": of,
        "page": page,
        "rows": [(one, *_links(one, links)) for one in page.waiters],
        "all": links.page("waiting") if of else "",
        "earlier": links.page("waiting", **query, page=str(number - 1)) if number > 1 else "",
        "later": links.page("waiting", **query, page=str(number + 1)) if page.has_more else "",
    }
    return render(request, "resourcepool/dashboard/waiting.html", context)


def _number(text: str) -> int:
    return max(1, int(text)) if text.isascii() and text.isdecimal() and len(text) < 6 else 1


def _links(one: Waiting, links: Links) -> tuple[str, Sequence[Button]]:
    """Return the URL of what holds it up, and the operations on it."""
    if not one.key:
        return links.changelist(one.model, **LEASED), ()
    return links.change_page(one.model, one.key), links.on_row(one.model, one.key, ENDING_WAITS)
