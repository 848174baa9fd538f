"""The filters beside the lists of servers, queues and moves."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Exists, OuterRef
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.filters import ChoiceFilter, choice_filter
from resourcepool.queues.models import Move, QueueGroup, Server
from resourcepool.queues.queries import of_server

MAX_CHOICES = 100  # names; another one can be typed into the address
LONGEST_KEY = 18  # digits that every database takes


def unowned() -> Any:
    """Return the condition on queues that no living server has."""
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
)  # where its name is written down
MoveFilter = choice_filter("what", _("what"), Move.Action.choices)
StatusFilter = choice_filter(
    "status",
    _("status"),
    [
        ("unowned", _("without a living owner")),
        ("asked", _("asked for")),
        ("pinned", _("pinned")),
        ("retiring", _("being removed")),
    ],
    _narrow,
)


class ServerFilter(ChoiceFilter):
    """By the key of the server that has a queue, or has asked for it; links lead here, so it names only that one."""

    title, parameter_name = _("server, has it or has asked for it"), "server"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        wanted = self.value()
        return [(wanted, str(Server.objects.filter(pk=_key(wanted)).first() or f"#{wanted}"))] if wanted else []

    def narrow(self, rows: Any, wanted: str) -> Any:
        return rows.filter(of_server(_key(wanted)))


def _key(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) <= LONGEST_KEY else 0
