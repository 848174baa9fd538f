"""Queue servers and moves in the admin, and the filters beside the lists of servers, queues and moves."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef
from django.http import HttpRequest

from resourcepool.admin.base import ExactSearchMixin, ReadOnlyAdmin
from resourcepool.admin.columns import column, lines, link_to_list
from resourcepool.admin.filters import ChoiceFilter, choice_filter, newest
from resourcepool.admin.queues.queue_groups import PerQueueGroupAdminMixin
from resourcepool.operations.operation import by_name
from resourcepool.operations.queues import DRAIN, UNDRAIN
from resourcepool.queues.models import Move, Queue, QueueGroup, Server
from resourcepool.queues.queries import of_server
from resourcepool.status.queues.queue_groups import ServerStatus, queue_groups
from resourcepool.status.queues.system import badge_of_server
from resourcepool.status.times import ago, duration, exact_duration, precise_duration
from resourcepool.text import format_labels
from resourcepool.translation import gettext, gettext_lazy as _

MAX_CHOICES = 1_000  # names; other names work in the URL of a list
MAX_KEY_DIGITS = 18  # that every database takes


def unowned() -> Any:
    """Return the condition for queues that no living server has."""
    return ~Exists(Server.objects.alive().filter(pk=OuterRef("cur_server_id")))


def queue_group_choices() -> list[tuple[str, str]]:
    names = QueueGroup.objects.order_by("name").values_list("name", flat=True)
    return [(name, name) for name in names[:MAX_CHOICES]]


def _narrow(rows: Any, wanted: str) -> Any:
    if wanted == "unowned":
        return rows.filter(unowned())
    if wanted == "asked":
        return rows.filter(requested_at__isnull=False, is_retiring=False)
    if wanted == "pinned":
        return rows.exclude(pin="")
    return rows.filter(is_retiring=True) if wanted == "retiring" else rows


QueueGroupFilter = choice_filter(
    "queue_group", _("queue group"), queue_group_choices, lambda rows, name: rows.filter(queue_group__name=name)
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


def _figure(name: str, title: Any, spell: Callable[[Any], str]) -> Any:
    """Return a column with this attribute of a server's status; None is shown as ""."""

    def spelled(status: ServerStatus) -> str:
        value = getattr(status, name)
        return "" if value is None else spell(value)

    return column("status", title, spelled, name=name)


def _heartbeat(status: ServerStatus) -> str:
    last = gettext("%s ago") % precise_duration(status.heartbeat)
    ends = gettext("presumed dead in %s") % precise_duration(status.expires_in)
    return lines(last, ends if status.is_alive else "")


LABELS = column("labels", _("labels"), format_labels, name="offered")
REGISTERED = _figure("registered", _("registered"), ago)
STATE = column("badge", _("state"), lambda badge: badge.html, name="status_badge")
HEARTBEAT = column("status", _("heartbeat"), _heartbeat, name="heartbeat")


@admin.register(Server)
class ServerAdmin(ReadOnlyAdmin, PerQueueGroupAdminMixin):
    """One row for each run of a process; it is removed when the process has left or was presumed dead."""

    list_display = (
        *("named", "queue_group", STATE, HEARTBEAT, "queues", "weight", "limit", LABELS, REGISTERED, "holder"),
    )
    fields = (
        *(
            "queue_group",
            "name",
            "holder",
            STATE,
            HEARTBEAT,
            _figure("ttl", _("presumed dead after"), exact_duration),
        ),
        *("weight", "limit", LABELS, "queues", REGISTERED),
        _figure("idle", _("no queue for"), lambda seconds: gettext("for %s") % duration(seconds)),
        _figure("last_activity", _("last asked for work"), ago),
        *("in_hand", "fence"),
    )
    list_filter = (QueueGroupFilter, "state")
    list_select_related = ("queue_group",)
    search_fields = ("name", "holder")
    actions = ()
    operations = by_name(DRAIN, UNDRAIN)

    def load_column_values(self, rows: Any) -> None:
        """Set the status and the badge of each server; None if it has just left."""
        groups = queue_groups({server.queue_group.name for server in rows}, flaps=False)
        found = {one.pk: (one, badge_of_server(group, one)) for group in groups for one in group.servers}
        for server in rows:
            server.status, server.badge = found.get(server.pk, (None, None))

    @admin.display(description=_("server"))
    def named(self, server: Any) -> str:
        return str(server)

    @admin.display(description=_("queues"))
    def queues(self, server: Any) -> str:
        if server.status is None:
            return ""
        owned = link_to_list(self.admin_site, Queue, server.status.queues, server=server.pk)
        requested = server.status.awaits
        return lines(owned, gettext("%d requested") % requested if requested else "")


@admin.register(Move)
class MoveAdmin(ExactSearchMixin, ReadOnlyAdmin):
    """Moves, newest first: which queue went from which server to which, and why."""

    list_display = fields = (
        *("at", "queue_group", "generation", "queue_id", "what", "from_server", "to_server", "fence", "reason"),
    )
    list_filter = (
        choice_filter(
            "queue_group", _("queue group"), queue_group_choices
        ),  # its rows have the name, not the key
        choice_filter("what", _("action"), Move.Action.choices),
    )
    search_fields = ("queue_id",)
    search_help_text = _(
        "Enter the complete id of a queue. Filters and search cover only the newest 100,000 moves."
    )

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        return super().get_search_results(request, newest(queryset), search_term)
