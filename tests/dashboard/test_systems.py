"""What the panels of all systems whose rows are known by name have in common."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from resourcepool.status.registry import named_systems
from resourcepool.status.system import NamedSystem
from tests.dashboard.test_streams import shown

pytestmark = pytest.mark.django_db
WITH_PANEL = {name: system for name, system in named_systems().items() if system.panel is not None}


@pytest.mark.parametrize("system", WITH_PANEL.values(), ids=WITH_PANEL)
def test_there_is_no_panel_without_rows(admin_client: Client, system: NamedSystem) -> None:
    assert system.panel is not None
    mark = system.panel.html_id or f"rp-{system.name}"
    assert mark not in shown(admin_client)
    system.reader.model._base_manager.create(name="reviews")
    assert mark in shown(admin_client)


@pytest.mark.parametrize("system", WITH_PANEL.values(), ids=WITH_PANEL)
def test_who_may_not_see_a_system_sees_none_of_its_rows(
    client: Client, django_user_model: Any, system: NamedSystem
) -> None:
    model = system.reader.model
    model._base_manager.create(name="secret-one")
    user = django_user_model.objects.create_user("viewer", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_proxy"))
    client.force_login(user)
    assert "secret-one" not in shown(client)
    user.user_permissions.add(Permission.objects.get(codename=f"view_{model._meta.model_name}"))
    assert "secret-one" in shown(client)
