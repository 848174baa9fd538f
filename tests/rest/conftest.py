"""Programs that call the API, with different permissions."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from rest_framework.test import APIClient

from resourcepool.leases.keeper import keeper
from tests.rest.described import refuse_undescribed


class Caller:
    """A program that calls the API as one user; all that it gets is as OpenAPI describes it."""

    def __init__(self, user: User | None) -> None:
        self.client = APIClient(SERVER_NAME="localhost", **{"wsgi.multithread": True})
        if user is not None:
            self.client.force_authenticate(user)

    def get(self, address: str, **query: Any) -> Any:
        return checked(self.client.get(f"/api/{address}", query))

    def post(self, address: str, **sent: Any) -> Any:
        return checked(self.client.post(f"/api/{address}", sent, format="json"))

    def post_from(self, host: str, address: str, **sent: Any) -> Any:
        return checked(self.client.post(f"/api/{address}", sent, format="json", REMOTE_ADDR=host))

    def send(self, address: str, text: str | bytes, kind: str = "application/json") -> Any:
        return checked(self.client.post(f"/api/{address}", text, content_type=kind))

    def got(self, address: str, status: int = 201, **sent: Any) -> Any:
        """Return the JSON of the response to a POST."""
        answer = self.post(address, **sent)
        assert answer.status_code == status, answer.content
        return answer.json() if answer.content else None


def checked(answer: Any) -> Any:
    """Return the response, which OpenAPI describes."""
    refuse_undescribed(answer)
    return answer


def user(name: str, *permissions: str) -> User:
    made = User.objects.create_user(name)
    made.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    assert made.user_permissions.count() == len(permissions)
    return made


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Release the leases that a test leaves behind."""
    yield
    for lease in keeper.unreleased():
        keeper.remove(lease)


@pytest.fixture
def call(db: None) -> Callable[..., Caller]:
    """``call("lease_proxy", ..)``: a program with these permissions."""
    return lambda *permissions, name="bot": Caller(user(name, *permissions))


@pytest.fixture
def crawler(call: Callable[..., Caller]) -> Caller:
    return call("lease_proxy", "quarantine_proxy", "lease_lock")


@pytest.fixture
def root(db: None) -> Caller:
    return Caller(User.objects.create_superuser("root"))
