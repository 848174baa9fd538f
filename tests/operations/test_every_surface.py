"""Every operation on every surface that offers it: what it says, and what the history and Django's log record.

``expected.txt`` has the cases: what an operator sends, and indented the lines that it leads to. A case begins with

- ``admin``: an action of a list; model, operation and keys, ``|``, and the fields of the form as JSON;
- ``page``: the same by the button of a page;
- ``manage``: a command, without the prefix of its name;
- ``rest``: an operation on proxies, and the body as JSON.

With ``RECORD=1`` in the environment a run writes what the cases lead to; review the difference.
"""

import os
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.test import Client

from resourcepool.admin.operations_mixin import OperationsAdminMixin
from resourcepool.management.commands import (
    resourcepool_channels,
    resourcepool_dispenser,
    resourcepool_locks,
    resourcepool_queues,
    resourcepool_streams,
    resourcepool_topics,
)
from resourcepool.models import Proxy
from resourcepool.operations import OPERATIONS
from tests.committed import transactional_db
from tests.health_checks.conftest import scripted
from tests.history.fixtures import history
from tests.operations.scene import everything
from tests.operations.surfaces import expected, outcome, post, record, traces, users

__all__ = ["history", "scripted", "transactional_db", "users"]

COMMANDS: dict[str, Any] = {
    "channels": resourcepool_channels,
    "dispenser": resourcepool_dispenser,
    "locks": resourcepool_locks,
    "queues": resourcepool_queues,
    "streams": resourcepool_streams,
    "topics": resourcepool_topics,
}
NO_OPERATIONS = ("add", "change", "clear", "publish", "listen")


@pytest.mark.usefixtures("scripted", "users", "history")
@pytest.mark.parametrize("case", expected())
def test_it_says_and_records_what_it_did(case: str) -> None:
    lines = outcome(case)
    if os.environ.get("RECORD"):
        record(case, lines)
    assert lines == expected()[case]


@pytest.mark.usefixtures("scripted", "users", "history")
def test_who_may_only_look_does_none_of_them(client: Client) -> None:
    everything()
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    client.force_login(viewer)
    for case in expected():
        if case.startswith("admin "):
            post(client, case)
        elif case.startswith("page "):
            assert post(client, case).status_code == 403, case
    assert traces() == []


def test_every_operation_of_the_admin_is_tried() -> None:
    pages: Any = admin.site._registry.items()
    offered = {
        (model._meta.model_name, name)
        for model, page in pages
        if isinstance(page, OperationsAdminMixin) and model._meta.app_label == "resourcepool"
        for name in page.operations
    }
    tried = {tuple(case.split()[1:3]) for case in expected() if case.startswith(("admin ", "page "))}
    assert offered <= tried


def test_every_operation_on_resources_is_tried() -> None:
    tried = {tuple(case.split()[:3]) for case in expected()}
    for name in OPERATIONS:
        assert {("manage", "operate", name), ("rest", "proxy", name), ("admin", "proxy", name)} <= tried
    assert {one.name for one in OPERATIONS.values() if not one.is_for(Proxy)} <= {"check"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_subcommand_that_operates_is_tried(name: str) -> None:
    tried = {case.split()[2] for case in expected() if case.startswith(f"manage {name} ")}
    actions = {one.name for one in COMMANDS[name].Command().subcommands() if not one.is_query}
    assert actions - {*NO_OPERATIONS} <= tried
