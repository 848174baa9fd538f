"""Elections in the admin: who leads, since when, and who stands by."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.generic import ReadOnlyAdmin
from resourcepool.admin.resources.columns import lines
from resourcepool.admin.timeline import Timelined
from resourcepool.dialect import MicrosUntil
from resourcepool.elections.models import Leadership
from resourcepool.elections.term import standbys
from resourcepool.status.durations import duration

SHOWN = 5  # standbys of one election


@admin.register(Leadership)
class LeadershipAdmin(Timelined, ReadOnlyAdmin):
    """One row for each name that was ever campaigned for; streams and jobs have lists of their own."""

    list_display = ("name", "led_by", "fence")
    fields = ("name", "led_by", "waiting", "fence")
    search_fields = ("name",)
    ordering = ("name",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the elections with their ages, by the database's clock."""
        rows: Any = super().get_queryset(request)
        found: QuerySet[Any] = rows.annotate(left=MicrosUntil("busy_before"), began=MicrosUntil("elected_at"))
        return found

    @admin.display(description=_("leader"))
    def led_by(self, row: Any) -> str:
        """Show who leads, and since when."""
        if not row.holder or row.left <= 0:
            return gettext("no leader")
        is_noted = row.elected_term == row.fence and row.began is not None
        return lines(
            row.holder, gettext("for %s") % duration(max(0.0, -row.began / 1_000_000)) if is_noted else ""
        )

    @admin.display(description=_("standbys"))
    def waiting(self, row: Any) -> str:
        """Show who leads next, and after that."""
        line = standbys(row._state.db, Leadership, row.name).order_by("priority", "pk")
        holders = list(line.values_list("holder", flat=True)[: SHOWN + 1])
        return lines("", *holders[:SHOWN], ".." if len(holders) > SHOWN else "") if holders else gettext("none")
