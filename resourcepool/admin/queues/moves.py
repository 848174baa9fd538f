"""Moves in the admin: which queue went from which server to which, and why."""

from typing import Any

from django.contrib import admin
from django.db.models import Max, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.queues.filters import NamedTaskTypeFilter, WhatFilter
from resourcepool.admin.records import NEWEST, ReadOnlyAdmin
from resourcepool.admin.words import moments
from resourcepool.events import shown
from resourcepool.queues.models import Move


@admin.register(Move)
class MoveAdmin(ReadOnlyAdmin):
    """The newest moves."""

    list_display = fields = (
        *(moments("at", _("at")), "task_type", "generation", "queue_id", "what", "from_server", "to_server"),
        *("fence", "why"),
    )
    list_filter = (NamedTaskTypeFilter, WhatFilter)
    search_fields = ("queue_id",)
    search_help_text = _("The whole id of a queue. Filters and the search look at the newest 100,000 moves.")

    @admin.display(description=_("reason"))
    def why(self, move: Move) -> str:
        """Show the reason, in the reader's language if it is one of the program's."""
        return shown(move.reason)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find the newest moves; of one queue if its id is given."""
        last = queryset.model._default_manager.aggregate(last=Max("pk"))["last"] or 0
        newest = queryset.filter(pk__gt=last - NEWEST)
        return (newest.filter(queue_id=search_term.strip()) if search_term.strip() else newest), False
