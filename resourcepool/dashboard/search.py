"""The page of the search: one box for everything, answered in sentences, with the operations beside them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from resourcepool.dashboard.access import can_view, visible_models
from resourcepool.dashboard.links import Button, Links
from resourcepool.history.models import Event
from resourcepool.queues.models import Queue, Server
from resourcepool.status.finding import MAX_TEXT, Found, find_everything
from resourcepool.status.locks.kinds import LockKind
from resourcepool.status.registry import systems
from resourcepool.taskqueue.abstract import work_models
from resourcepool.translation import gettext as _

# The operations on each thing that a holder holds, and on a task that blocks its stream.
ON_RELATED = ("revoke", "quarantine", "retry", "discard")


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found, with links and buttons; ``url``: of its page, "": none."""

    found: Found
    url: str
    buttons: Sequence[Button]
    related: Sequence[tuple[str, str, Sequence[Button]]]


@require_safe
def search(request: HttpRequest, *, site: AdminSite) -> HttpResponse:
    """Show what the text ``q`` names, among all that the user may view."""
    request.current_app = site.name
    text, links = request.GET.get("q", "")[:MAX_TEXT], Links(site, request)
    found = list(find_everything(text, visible_models(site, request), _visible(site, request)))
    links.load((model, key) for one in found for model, key, _text in one.related)
    answers = [_answer(one, links) for one in found]
    context = {**site.each_context(request), "title": _("Search"), "text": text, "answers": answers}
    return render(request, "resourcepool/dashboard/search.html", context)


def _visible(site: AdminSite, request: HttpRequest) -> set[Any]:
    """Return the models besides resources that the user may view."""
    models = {model for system in systems() for model in (*system.viewed, *system.details)}
    models |= {Queue, Server, Event, *work_models(), *(kind.model for kind in LockKind)}
    return {model for model in models if can_view(site, request, model)}


def _answer(found: Found, links: Links) -> Answer:
    related = [
        (text, links.change_page(model, key), links.on_row(model, key, ON_RELATED))
        for model, key, text in found.related
    ]
    if found.model is None or found.key is None:
        url = links.changelist(found.model, **found.filters) if found.model else ""
        return Answer(found, url, (), related)
    row = links.get_object(found.model, str(found.key))
    buttons = links.of_row(row) if row is not None else ()
    return Answer(found, links.change_page(found.model, found.key), buttons, related)
