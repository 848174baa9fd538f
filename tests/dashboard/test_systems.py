"""What the panels of all systems whose rows are known by name have in common."""

import pytest
from django.test import Client

from resourcepool.status.registry import named_systems
from resourcepool.status.system import NamedSystem
from tests.dashboard.test_streams import seen_by, shown

pytestmark = pytest.mark.django_db
WITH_PANEL = {name: system for name, system in named_systems().items() if system.panel is not None}


@pytest.mark.parametrize("system", WITH_PANEL.values(), ids=WITH_PANEL)
def test_there_is_no_panel_without_rows(admin_client: Client, system: NamedSystem) -> None:
    mark = f'id="rp-{system.name}"'
    assert mark not in shown(admin_client)
    system.reader.model._base_manager.create(name="reviews")
    assert mark in shown(admin_client)


@pytest.mark.parametrize("system", WITH_PANEL.values(), ids=WITH_PANEL)
def test_who_may_not_see_a_system_sees_none_of_its_rows(client: Client, system: NamedSystem) -> None:
    model = system.reader.model
    model._base_manager.create(name="secret-one")
    assert "secret-one" not in seen_by(client, "view_proxy")
    assert "secret-one" in seen_by(client, f"view_proxy view_{model._meta.model_name}")
