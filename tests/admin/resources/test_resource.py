"""The admin pages of resources show no secrets and disturb no lease."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

from resourcepool.history.recorder import recorder
from resourcepool.models import Event, Proxy
from resourcepool.signals import EventKind

LIST = "/admin/resourcepool/proxy/"
CANARY = "c4nary-s3cret"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def proxy() -> Proxy:
    return Proxy.objects.create(host="a.example", port=80, username="joe", password=CANARY)


@pytest.fixture
def operator() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("operator"))
    return client


def page_of(proxy: Proxy) -> str:
    return f"{LIST}{proxy.pk}/change/"


def form(**changes: Any) -> dict[str, Any]:
    entered = {"scheme": "http", "host": "a.example", "port": 80, "username": "joe", "country": "", "tags": ""}
    return {**entered, "weight": 1, "notes": "", "new_password": "", **changes}


def test_an_empty_password_keeps_the_stored_one_and_another_replaces_it(operator: Client, proxy: Proxy) -> None:
    assert operator.post(page_of(proxy), form(notes="slow")).status_code == 302
    proxy.refresh_from_db()
    assert (proxy.notes, proxy.password) == ("slow", CANARY)
    operator.post(page_of(proxy), form(new_password="n3w-one"))
    proxy.refresh_from_db()
    assert proxy.password == "n3w-one"


@pytest.mark.parametrize(
    ("field", "value"), [("scheme", "https"), ("host", "evil.example"), ("port", 81), ("username", "ann")]
)
def test_a_stored_password_does_not_follow_to_another_address(
    operator: Client, proxy: Proxy, field: str, value: Any
) -> None:
    page = operator.post(page_of(proxy), form(**{field: value}), follow=True).content.decode()
    assert "The stored password was removed" in page
    proxy = Proxy.objects.get()
    assert (getattr(proxy, field), proxy.password) == (value, "")


def test_an_entered_password_belongs_to_the_new_address(operator: Client, proxy: Proxy) -> None:
    page = operator.post(page_of(proxy), form(port=81, new_password="n3w-one"), follow=True).content.decode()
    assert "The stored password was removed" not in page
    assert Proxy.objects.get().url == "http://joe:n3w-one@a.example:81"


def test_a_new_proxy_gets_its_password(operator: Client) -> None:
    assert operator.post(f"{LIST}add/", form(new_password=CANARY)).status_code == 302
    assert Proxy.objects.get().password == CANARY


def test_without_a_key_pages_open_and_a_new_password_is_refused_at_its_field(
    operator: Client, proxy: Proxy
) -> None:
    with override_settings(RESOURCEPOOL={}):
        assert operator.get(page_of(proxy)).status_code == 200
        assert operator.post(page_of(proxy), form(notes="slow")).status_code == 302
        refused = operator.post(page_of(proxy), form(new_password="n3w-one"))
    assert "there is no key for secrets" in refused.content.decode()
    assert "n3w-one" not in refused.content.decode()


@pytest.mark.parametrize(("field", "value"), [("host", "a b"), ("country", "U1"), ("port", 0), ("tags", "Ä")])
def test_a_wrong_value_is_refused_at_its_field(operator: Client, proxy: Proxy, field: str, value: Any) -> None:
    refused = operator.post(page_of(proxy), form(**{field: value}))
    assert refused.status_code == 200
    assert field in refused.context["adminform"].form.errors


def test_an_edit_does_not_touch_the_lease(operator: Client, proxy: Proxy) -> None:
    lease = Proxy.pool.acquire()
    assert lease is not None
    operator.post(page_of(proxy), form(notes="slow"))
    lease.renew()
    lease.release()


def test_deleting_a_held_resource_reports_that_it_was_retired(operator: Client, proxy: Proxy) -> None:
    lease = Proxy.pool.acquire()
    assert lease is not None
    with override_settings(RESOURCEPOOL={"HISTORY": True}):
        answer = operator.post(f"{LIST}{proxy.pk}/delete/", {"post": "yes"}, follow=True)
        recorder.flush()
    assert "1 held resource was retired instead" in answer.content.decode()
    assert [event.actor for event in Event.objects.filter(what=EventKind.DRAINED)] == ["operator"]
    lease.release()
    operator.post(LIST, {"action": "delete_selected", "_selected_action": [proxy.pk], "post": "yes"})
    assert not Proxy.objects.exists()
