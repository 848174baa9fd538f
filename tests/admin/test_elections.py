"""Elections in the admin."""

import pytest
from django.test import Client
from django.urls import reverse

from resourcepool.elections import Election
from resourcepool.elections.models import Election as ElectionRow
from tests.app.rows import granted
from tests.committed import *  # noqa: F403 (fixtures)
from tests.eventually import InBackground, eventually

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_list_and_the_page_show_leader_and_standbys(admin_client: Client) -> None:
    term = Election("reports").campaign()
    ElectionRow.objects.create(name="nothing")
    waiting = InBackground(lambda: Election("reports").campaign(timeout=60).resign())
    (standby,) = eventually(Election("reports").standbys, 30)
    shown = admin_client.get(reverse("admin:resourcepool_election_changelist")).content.decode()
    assert term.holder in shown
    assert "no leader" in shown
    address = reverse("admin:resourcepool_election_change", args=["reports"])
    assert standby in admin_client.get(address).content.decode()
    term.resign()
    waiting.result(30)


def test_a_leader_whose_term_is_not_recorded_yet_is_shown_without_start(admin_client: Client) -> None:
    granted(ElectionRow.objects.create(name="reports"), "web-1 <b>")
    shown = admin_client.get(reverse("admin:resourcepool_election_changelist")).content.decode()
    assert "web-1 &lt;b&gt;" in shown
