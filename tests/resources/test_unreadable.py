"""A resource with an unreadable secret is quarantined, and not leased again and again."""

from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from resourcepool.exceptions import SecretUnreadable
from resourcepool.models import Proxy
from tests.app.rows import columns, new

FIELD: Any = Proxy._meta.get_field("password")


@pytest.fixture(autouse=True)
def _a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FIELD, "was_readable", False)


@pytest.fixture
def bad() -> Any:
    """A proxy with a password copied from another one, and a good proxy."""
    good, bad = new(Proxy, host="good.example", password="x"), new(Proxy, host="bad.example", password="y")
    Proxy.objects.filter(pk=bad.pk).update(password=columns(good)["password"])
    assert Proxy.objects.get(pk=good.pk).password == "x"
    return bad


def state(row: Any) -> tuple[str, str]:
    status, reason = Proxy.objects.values_list("status", "reason").get(pk=row.pk)
    return status, str(reason)


def test_after_a_with_block_that_could_not_read_it(bad: Any) -> None:
    with pytest.raises(SecretUnreadable), Proxy.pool.lease(host="bad.example", timeout=5) as lease:
        _ = lease.resource.url
    assert state(bad) == ("quarantined", "its password cannot be decrypted")
    for _ in range(3):
        with Proxy.pool.lease(timeout=5) as lease:
            assert lease.resource.url == "http://:x@good.example:3128"


def test_not_when_the_keys_of_this_process_may_be_at_fault(bad: Any, settings: Any) -> None:
    FIELD.was_readable = False
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "SECRET_KEYS": [Fernet.generate_key().decode()]}
    for _ in range(2):
        with pytest.raises(SecretUnreadable), Proxy.pool.lease(timeout=5) as lease:
            _ = lease.resource.url
    assert not Proxy.objects.filter(status="quarantined").exists()


def test_not_for_the_secret_of_another_row(bad: Any) -> None:
    with pytest.raises(SecretUnreadable), Proxy.pool.lease(host="good.example", timeout=5):
        _ = Proxy.objects.get(pk=bad.pk).password
    assert not Proxy.objects.filter(status="quarantined").exists()


def test_a_program_gets_the_next_one(bad: Any) -> None:
    program = APIClient()
    program.force_authenticate(User.objects.create_superuser("program"))
    for _ in range(100):  # which of the two is tried first is chance
        answer = program.post("/api/pools/proxy/acquire", {}, format="json")
        assert (answer.status_code, answer.json()["resource"]["host"]) == (201, "good.example")
        program.post("/api/leases/release", {"lease": answer.json()["lease"]}, format="json")
        if state(bad) != ("in_service", ""):
            break
    assert state(bad) == ("quarantined", "its password cannot be decrypted")
