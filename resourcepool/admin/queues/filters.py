"""The filters of the lists of servers, queues and moves."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Exists, OuterRef

from resourcepool.admin.filters import ChoiceFilter, choice_filter
from resourcepool.queues.models import Move, QueueGroup, Server
from resourcepool.queues.queries import of_server
from resourcepool.translation import gettext_lazy as _

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
NamedQueueGroupFilter = choice_filter(
    "queue_group", _("queue group"), _queue_groups
)  # for rows with the name instead of the key
MoveFilter = choice_filter("what", _("action"), Move.Action.choices)
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
        return [(wanted, str(Server.objects.filter(pk=_key(wanted)).first() or f"#{wanted}"))] if wanted else []

    def narrow(self, rows: Any, wanted: str) -> Any:
        return rows.filter(of_server(_key(wanted)))


def _key(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) <= MAX_KEY_DIGITS else 0
