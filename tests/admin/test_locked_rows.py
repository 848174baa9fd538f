"""Pages while a transaction locks a row: they report it within seconds, and change all other rows."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from resourcepool.models import Proxy, QueueGroup
from tests.admin.conftest import form_at, text
from tests.app.rows import columns, granted, several
from tests.committed import *  # noqa: F403 (fixtures)
from tests.locking import lock_wait, locked, wait_for_a_second_only

pytestmark = [pytest.mark.only("mysql", "postgresql"), pytest.mark.usefixtures("transactional_db")]

LIST = "/admin/resourcepool/proxy/"
LOCKED = "locked by another transaction"


@pytest.fixture(autouse=True)
def _for_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_a_second_only(monkeypatch)


@pytest.fixture(params=[False, True], ids=["plain", "ATOMIC_REQUESTS"])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", request.param)
    user, client = User.objects.create_superuser("superuser"), Client()
    client.force_login(user)
    yield client
    user.delete()


@pytest.fixture
def rows(client: Client) -> Iterator[list[Any]]:
    """Three rows, the second locked; afterwards the lock timeout of other statements is unchanged."""
    made, usual = several(Proxy, 3), lock_wait()
    with locked(made[1]):
        yield made
    assert lock_wait() == usual


class TestOne:
    def test_is_not_saved(self, client: Client, rows: list[Any]) -> None:
        url = f"{LIST}{rows[1].pk}/change/"
        page = text(client.post(url, {**form_at(client, url), "notes": "moved"}, follow=True))
        assert "Not saved: " in page
        assert LOCKED in page
        assert f"resourcepool.Proxy {rows[1].pk} is locked by session" in page
        assert columns(rows[1])["notes"] == ""
        url = f"{LIST}{rows[0].pk}/change/"
        assert client.post(url, {**form_at(client, url), "notes": "moved"}).status_code == 302
        assert columns(rows[0])["notes"] == "moved"

    def test_is_not_deleted(self, client: Client, rows: list[Any]) -> None:
        page = text(client.post(f"{LIST}{rows[1].pk}/delete/", {"post": "yes"}, follow=True))
        assert "Not deleted: " in page
        assert LOCKED in page
        assert f"resourcepool.Proxy {rows[1].pk} is locked by session" in page
        assert columns(rows[1])["in_service"]
        client.post(f"{LIST}{rows[0].pk}/delete/", {"post": "yes"})
        assert not Proxy.objects.filter(pk=rows[0].pk).exists()

    def test_queue_group_is_not_saved(self, client: Client) -> None:
        kind = QueueGroup.objects.create(name="orders")
        url = f"/admin/resourcepool/queuegroup/{kind.pk}/change/"
        with locked(kind):
            page = text(client.post(url, {**form_at(client, url), "handover_timeout": "77"}, follow=True))
        assert "Not saved: " in page
        assert LOCKED in page
        assert f"resourcepool.QueueGroup {kind.pk} is locked by session" in page
        assert columns(kind)["handover_timeout"] != 77


class TestMany:
    def post(self, client: Client, rows: list[Any], action: str, **more: str) -> str:
        chosen = {"action": action, "_selected_action": [str(row.pk) for row in rows], **more}
        return text(client.post(LIST, chosen, follow=True))

    def test_are_deleted_except_locked_ones(self, client: Client, rows: list[Any]) -> None:
        page = self.post(client, rows, "delete_selected", post="yes")
        assert LOCKED in page
        assert "uccessfully deleted 2 proxies" in page
        assert "retired instead" not in page
        assert [row.pk for row in Proxy.objects.all()] == [rows[1].pk]

    def test_are_changed_except_locked_ones(self, client: Client) -> None:
        rows = several(Proxy, 3)
        for row in rows:
            granted(row)
        with locked(rows[1]):
            page = self.post(client, rows, "revoke", confirmed="yes", reason="stuck")
        assert LOCKED in page
        assert "The leases of 2 proxies were revoked" in page
        assert "1 unchanged." in page
        assert "or unknown" not in page
        assert [columns(row)["holder"] for row in rows] == ["", "me", ""]
