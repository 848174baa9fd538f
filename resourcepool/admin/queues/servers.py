"""Queue servers and moves in the admin, and the filters beside the lists of servers, queues and moves."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from django.contrib import admin
from django.db.models import Count, Exists, OuterRef
from django.http import HttpRequest

from resourcepool.admin.base import ExactSearchMixin, ReadOnlyAdmin
from resourcepool.admin.columns import ago_since, column, for_time_since, lines, link_to_list
from resourcepool.admin.filters import ChoiceFilter, choice_filter, newest
from resourcepool.admin.queues.queue_groups import PerQueueGroupAdminMixin
from resourcepool.operations.operation import by_name
from resourcepool.operations.queues import DRAIN, UNDRAIN
from resourcepool.queues.models import Move, Queue, QueueGroup, Server
from resourcepool.queues.queries import of_server
from resourcepool.status.queues.system import badge_of_server
from resourcepool.status.times import exact_duration, precise_duration
from resourcepool.text import format_labels
from resourcepool.translation import gettext, gettext_lazy as _

MAX_CHOICES = 100  # names; other names work in the URL
MAX_KEY_DIGITS = 18  # that every database takes


def unowned() -> Any:
    """Return the condition for queues that no living server has."""
    return ~Exists(Server.objects.alive().filter(pk=OuterRef("cur_server_id")))


def _queue_groups() -> Iterable[tuple[str, str]]:
    return [
        (name, name)
        for name in QueueGroup.objects.order_by("name").values_list("name", flat=True)[:MAX_CHOICES]
    ]


def _narrow(rows: Any, wanted: str) -> Any:
    if wanted == "unowned":
        return rows.filter(unowned())
    if wanted == "asked":
        return rows.filter(requested_at__isnull=False, is_retiring=False)
    if wanted == "pinned":
        return rows.exclude(pin="")
    return rows.filter(is_retiring=True) if wanted == "retiring" else rows


QueueGroupFilter = choice_filter(
    "queue_group", _("queue group"), _queue_groups, lambda rows, name: rows.filter(queue_group__name=name)
)
StatusFilter = choice_filter(
    "status",
    _("status"),
    [
        ("unowned", _("unowned")),
        ("asked", _("requested")),
        ("pinned", _("pinned")),
        ("retiring", _("being removed")),
    ],
    _narrow,
)


class ServerFilter(ChoiceFilter):
    """Filters by the key of the server that has or has requested a queue; offered only when a link has set it."""

    title, parameter_name = _("server (has or has requested it)"), "server"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        wanted = self.value()
        return (
            [(wanted, str(Server.objects.filter(pk=_key_in(wanted)).first() or f"#{wanted}"))] if wanted else []
        )

    def narrow(self, rows: Any, wanted: str) -> Any:
        return rows.filter(of_server(_key_in(wanted)))


def _key_in(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) <= MAX_KEY_DIGITS else 0


LABELS = column("labels", _("labels"), format_labels, name="offered")
REGISTERED = column("micros_registered", _("registered"), ago_since, name="registered")


@admin.register(Server)
class ServerAdmin(ReadOnlyAdmin, PerQueueGroupAdminMixin):
    """One row for each run of a process; it is removed when the process has left or was presumed dead."""

    list_display = (
        *("named", "queue_group", "status_badge", "heartbeat", "queues", "weight", "limit"),
        *(LABELS, REGISTERED, "holder"),
    )
    fields = (
        *("queue_group", "name", "holder", "status_badge", "heartbeat"),
        column("ttl", _("presumed dead after"), spell=exact_duration),
        *("weight", "limit", LABELS, "queues", REGISTERED),
        column("micros_idle", _("no queue for"), for_time_since, name="idle"),
        column("micros_last_activity", _("last asked for work"), ago_since, name="last_activity"),
        *("in_hand", "fence"),
    )
    list_filter = (QueueGroupFilter, "state")
    list_select_related = ("queue_group",)
    search_fields = ("name", "holder")
    actions = ()
    operations = by_name(DRAIN, UNDRAIN)

    def get_queryset(self, request: HttpRequest) -> Any:
        rows: Any = super().get_queryset(request)
        return rows.with_ages()

    def load_column_values(self, rows: Any) -> None:
        """Set ``owned_count`` and ``requested_count`` of each server: how many queues it has, and has requested."""
        pks, queue_groups = {server.pk for server in rows}, {server.queue_group_id for server in rows}
        queues = Queue.objects.filter(queue_group__in=queue_groups).order_by()
        owned = queues.filter(cur_server__in=pks).values_list("cur_server").annotate(Count("pk"))
        requests = queues.filter(requested_at__isnull=False, req_server__in=pks)
        requested = requests.values_list("req_server").annotate(Count("pk"))
        counts = dict(owned), dict(requested)
        for server in rows:
            server.owned_count, server.requested_count = (count.get(server.pk, 0) for count in counts)

    @admin.display(description=_("server"))
    def named(self, server: Any) -> str:
        return str(server)

    @admin.display(description=_("state"))
    def status_badge(self, server: Any) -> str:
        micros = server.micros_last_activity
        status = SimpleNamespace(
            is_alive=server.micros_left > 0,
            is_draining=server.state == Server.State.DRAINING,
            heartbeat=_since_heartbeat(server),
            queues=server.owned_count,
            last_activity=None if micros is None else -micros / 1_000_000,
            in_hand=server.in_hand,
        )
        return badge_of_server(server.queue_group, status).html

    @admin.display(description=_("heartbeat"))
    def heartbeat(self, server: Any) -> str:
        left = server.micros_left / 1_000_000
        last = gettext("%s ago") % precise_duration(_since_heartbeat(server))
        return lines(last, gettext("presumed dead in %s") % precise_duration(left) if left > 0 else "")

    @admin.display(description=_("queues"))
    def queues(self, server: Any) -> str:
        owned = link_to_list(self.admin_site, Queue, server.owned_count, server=server.pk)
        requested = server.requested_count
        return lines(owned, gettext("%d requested") % requested if requested else "")


def _since_heartbeat(server: Any) -> float:
    seconds: float = server.ttl - server.micros_left / 1_000_000
    return max(0.0, seconds)


@admin.register(Move)
class MoveAdmin(ExactSearchMixin, ReadOnlyAdmin):
    """Moves, newest first: which queue went from which server to which, and why."""

    list_display = fields = (
        *("at", "queue_group", "generation", "queue_id", "what", "from_server", "to_server", "fence", "reason"),
    )
    list_filter = (
        choice_filter(
            "queue_group", _("queue group"), _queue_groups
        ),  # its rows have the name instead of the key
        choice_filter("what", _("action"), Move.Action.choices),
    )
    search_fields = ("queue_id",)
    search_help_text = _(
        "Enter the complete id of a queue. Filters and search cover only the newest 100,000 moves."
    )

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        return super().get_search_results(request, newest(queryset), search_term)
