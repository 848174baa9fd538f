"""The REST API shows secrets only to the lessee, and no error report contains secrets or tokens."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from resourcepool.db.dialect import DbNow
from resourcepool.elections.models import Election as ElectionRow
from resourcepool.locks.channels.models import Channel as ChannelRow
from resourcepool.models import Dispenser, Proxy, QueueGroup, Stream, Topic
from tests.app.models import Device
from tests.app.rows import new
from tests.canary.planted import HOSTILE, PASSWORD, SCRIPT, SEALED, found_in
from tests.canary.test_errors import fail, reports, text_of
from tests.rest.test_access import POSTS, addresses

__all__ = ["reports"]

GETS = [one for one in addresses() if one not in POSTS]
QUERIES = ("", "?limit=1", "?holder=x", "?containing=a", "?kind=lock", f"?tag={PASSWORD}")


@pytest.fixture
def program() -> APIClient:
    """A program that may do everything; errors are answered, not raised."""
    found = APIClient(raise_request_exception=False)
    found.force_authenticate(User.objects.create_superuser("program"))
    return found


@pytest.fixture
def device(planted: Proxy) -> Any:
    for model in (Stream, Dispenser, Topic, ChannelRow, QueueGroup):
        model.objects.create(name=SCRIPT)
    ElectionRow.objects.create(name=SCRIPT, elected_at=DbNow())
    return new(Device, name="phone 1", pin=PASSWORD)


def test_they_are_told_to_who_leases_it(program: APIClient, device: Any) -> None:
    answer = program.post("/api/pools/device/acquire", {}, format="json")
    assert answer.json()["resource"]["pin"] == PASSWORD


@pytest.mark.parametrize("address", GETS)
def test_no_reading_shows_one(address: str, program: APIClient, planted: Proxy, device: Any) -> None:
    read = 0
    for pool, pk in (("proxy", planted.pk), ("device", device.pk)):
        filled = address.replace("<str:pool>", pool).replace("<path:pk>", str(pk))
        for name in (SCRIPT, HOSTILE[:-1]):
            for query in QUERIES:
                answer = program.get(f"/api/{filled.replace('<path:name>', quote(name))}{query}")
                read += answer.status_code == 200
                body = answer.content.decode()
                assert answer.status_code < 500
                assert not found_in(body)
                assert SEALED not in body
    assert read


@pytest.mark.parametrize(
    "where",
    [
        "resourcepool.rest.grants.detach",
        "resourcepool.rest.leases.as_data",
        "rest_framework.renderers.JSONRenderer.render",
        "resourcepool.rest.grants.Remote.release",
    ],
)
def test_a_mail_to_the_admins_has_none(
    where: str, program: APIClient, device: Any, reports: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = program.post("/api/locks/a/acquire", {}, format="json").json()["lease"]
    monkeypatch.setattr(where, fail)
    for address in ("pools/device/acquire", "leases/release"):
        sent = json.dumps({"lease": lease} if "release" in address else {})
        program.post(f"/api/{address}", sent, content_type="application/json")
    monkeypatch.undo()
    assert reports
    for said in map(text_of, reports):
        assert "deep inside" in said
        assert not found_in(said)
        assert lease not in said
