"""The filters beside the lists of servers, queues and moves."""

from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext_lazy as _

from resourcepool.queues.models import Move, Server, TaskType
from resourcepool.queues.queries import of_server

MOST = 100  # names; another one can be typed into the address
LONGEST_KEY = 18  # digits that every database takes


class TaskTypeFilter(admin.SimpleListFilter):
    """By task type."""

    title, parameter_name = _("task type"), "task_type"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return [
            (name, name) for name in TaskType.objects.order_by("name").values_list("name", flat=True)[:MOST]
        ]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.filter(task_type__name=self.value()) if self.value() else queryset


class NamedTaskTypeFilter(TaskTypeFilter):
    """By task type, where its name is written down."""

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.filter(task_type=self.value()) if self.value() else queryset


class StandingFilter(admin.SimpleListFilter):
    """By where a queue is, or is to go."""

    title, parameter_name = _("standing"), "standing"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return [
            ("ownerless", _("without a living owner")),
            ("asked", _("asked for")),
            ("pinned", _("pinned")),
            ("retiring", _("being removed")),
        ]

    def queryset(self, request: Any, queryset: Any) -> Any:
        wanted = self.value()
        if wanted == "ownerless":
            return queryset.filter(ownerless())
        if wanted == "asked":
            return queryset.filter(requested_at__isnull=False, is_retiring=False)
        if wanted == "pinned":
            return queryset.exclude(pin="")
        return queryset.filter(is_retiring=True) if wanted == "retiring" else queryset


class ServerFilter(admin.SimpleListFilter):
    """By the key of the server that has a queue, or has asked for it; links lead here, so it names only that one."""

    title, parameter_name = _("server, has it or has asked for it"), "server"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        wanted = self.value()
        if not wanted:
            return []
        found = Server.objects.filter(pk=_key(wanted)).first()
        return [(wanted, str(found or f"#{wanted}"))]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.filter(of_server(_key(self.value()))) if self.value() else queryset


def _key(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) <= LONGEST_KEY else 0


def ownerless() -> Any:
    """Return the condition on queues that no living server has."""
    return ~Exists(Server.objects.alive().filter(pk=OuterRef("cur_server_id")))


class WhatFilter(admin.SimpleListFilter):
    """By kind of move."""

    title, parameter_name = _("what"), "what"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return list(Move.What.choices)

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.filter(what=self.value()) if self.value() else queryset
