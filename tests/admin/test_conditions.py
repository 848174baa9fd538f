"""Conditions and barriers in the admin."""

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from resourcepool.admin.locks import ConditionAdmin
from tests.admin.conftest import may_only
from tests.history.fixtures import history  # noqa: F401 (a fixture)
from tests.status.locks.conftest import A, B, C, later, permits, stands, waits

pytestmark = pytest.mark.django_db
CONDITIONS = "/admin/resourcepool/conditionwaiter/"
BARRIERS = "/admin/resourcepool/barrier/"


def text(client: Client, address: str, **query: str) -> str:
    answer = client.get(address, query)
    assert answer.status_code == 200, answer
    return answer.content.decode()


@pytest.fixture
def places() -> None:
    stands("import done", A)
    waits("barrier", "import done", B)
    waits("condition", "orders", A, waited=600)
    permits("condition", "orders", ["", C])


@pytest.mark.usefixtures("places")
def test_the_lists_say_what_is_waited_for_what_stands_and_who_was_notified(admin_client: Client) -> None:
    shown = text(admin_client, BARRIERS)
    assert "<h1>Barriers</h1>" in shown
    (first,) = shown.split('class="field-name"')[1:]
    assert "barrier import done" in first
    assert ">blocking<" in first
    assert "<td>0</td>" in first
    assert "36500" not in shown
    shown = text(admin_client, CONDITIONS)
    assert "<h1>Conditions</h1>" in shown
    (second,) = shown.split('class="field-name"')[1:]
    assert "condition orders" in second
    assert "has waiters" in second
    assert "10 min" in second
    index = text(admin_client, "/admin/")
    assert f'href="{CONDITIONS}"' in index
    assert f'href="{BARRIERS}"' in index


@pytest.mark.usefixtures("places")
def test_the_page_of_a_name_has_its_line_and_those_who_were_notified(admin_client: Client) -> None:
    shown = text(admin_client, f"{CONDITIONS}orders/change/")
    assert f"{later(A)}: 1, waiting for 10 min" in shown
    assert f"{C}: 1, fence" in shown
    shown = text(admin_client, f"{BARRIERS}import done/change/")
    assert "<h1>barrier import done</h1>" in shown
    assert A in shown
    for missing in ("nothing", "import done", "orders_230", "x" * 300):
        assert admin_client.get(f"{CONDITIONS}{missing}/change/").status_code == 404
    assert admin_client.get(f"{BARRIERS}orders/change/").status_code == 404


def test_pages_go_on_and_names_are_found_by_how_they_begin(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ConditionAdmin, "list_per_page", 1)
    for name in ("a&b", "a+c", "b"):
        waits("condition", name, A)
    shown = text(admin_client, CONDITIONS, q="a")
    assert "condition a&amp;b" in shown
    assert 'href="?q=a&amp;after=a%26b"' in shown
    shown = text(admin_client, CONDITIONS, q="a", after="a&b")
    assert "condition a+c" in shown
    assert "after=" not in shown
    for wrong in ({"q": "A"}, {"q": "a\0"}, {"q": "x" * 300}, {"after": "\0"}):
        assert "No waiters." in text(admin_client, CONDITIONS, **wrong)


@pytest.mark.usefixtures("places")
@pytest.mark.parametrize(
    ("model", "name", "title"),
    [("conditionwaiter", "orders", "condition orders"), ("barrier", "import done", "barrier import done")],
)
def test_it_takes_the_permission_to_view_them(client: Client, model: str, name: str, title: str) -> None:
    others = {"view_lock", "view_ticket", "view_conditionwaiter", "view_barrier"} - {f"view_{model}"}
    user = may_only(client, *others)
    there = f"/admin/resourcepool/{model}/"
    for address in (there, f"{there}{name}/change/"):
        assert client.get(address).status_code == 403
    user.user_permissions.set(Permission.objects.filter(codename=f"view_{model}"))
    assert title in text(client, there)


@pytest.mark.usefixtures("places")
def test_nothing_but_a_barrier_is_removed(admin_client: Client) -> None:
    permits("barrier", "other", ["", A])
    for key in ("other_231", "orders_230", "import done"):
        assert admin_client.get(f"{BARRIERS}{key}/operate/remove/").status_code == 404
    assert admin_client.get(f"{CONDITIONS}orders_230/operate/remove/", follow=True).status_code == 404
