"""The filters beside the lists of servers, queues and moves."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Exists, OuterRef
from django.utils.translation import gettext_lazy as _

from resourcepool.admin.filters import ChoiceFilter, choice
from resourcepool.queues.models import Move, Server, TaskType
from resourcepool.queues.queries import of_server

MOST = 100  # names; another one can be typed into the address
LONGEST_KEY = 18  # digits that every database takes


def ownerless() -> Any:
    """Return the condition on queues that no living server has."""
    return ~Exists(Server.objects.alive().filter(pk=OuterRef("cur_server_id")))


def _task_types() -> Iterable[tuple[str, str]]:
    return [(name, name) for name in TaskType.objects.order_by("name").values_list("name", flat=True)[:MOST]]


def _standing(rows: Any, wanted: str) -> Any:
    if wanted == "ownerless":
        return rows.filter(ownerless())
    if wanted == "asked":
        return rows.filter(requested_at__isnull=False, is_retiring=False)
    if wanted == "pinned":
        return rows.exclude(pin="")
    return rows.filter(is_retiring=True) if wanted == "retiring" else rows


TaskTypeFilter = choice(
    "task_type", _("task type"), _task_types, lambda rows, name: rows.filter(task_type__name=name)
)
NamedTaskTypeFilter = choice("task_type", _("task type"), _task_types)  # where its name is written down
MoveFilter = choice("what", _("what"), Move.What.choices)
StandingFilter = choice(
    "standing",
    _("standing"),
    [
        ("ownerless", _("without a living owner")),
        ("asked", _("asked for")),
        ("pinned", _("pinned")),
        ("retiring", _("being removed")),
    ],
    _standing,
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
