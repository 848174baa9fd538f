"""Closed by default: every page and every action of these lists, tried by everybody."""

from typing import Any

import pytest
from django.contrib import admin
from django.urls import URLPattern

from resourcepool.models import Move, Queue, QueueGroup, Server
from tests.admin.conftest import ROLES, sign_in
from tests.admin.queues.scene import LIST, queue_group, server

pytestmark = pytest.mark.django_db

EVERYBODY = ("anonymous", *ROLES, "superuser")
VIEWERS = {"viewer", "operator", "administrator", "superuser"}
OPERATORS = {"operator", "superuser"}
ADMINISTRATORS = {"administrator", "superuser"}
NOBODY: set[str] = set()

# Who may open which page.
PAGES: dict[Any, dict[str, set[str]]] = {
    QueueGroup: {"add": ADMINISTRATORS, "delete": ADMINISTRATORS},
    Queue: {"add": ADMINISTRATORS, "delete": ADMINISTRATORS},
    Server: {"add": NOBODY, "delete": NOBODY},
    Move: {"add": NOBODY, "delete": NOBODY},
}
ACTIONS: dict[Any, dict[str, set[str]]] = {
    QueueGroup: {"pause": OPERATORS, "resume": OPERATORS, "delete_selected": ADMINISTRATORS},
    Queue: {"pin": OPERATORS, "unpin": OPERATORS, "remove": ADMINISTRATORS},
    Server: {"drain": OPERATORS, "undrain": OPERATORS},
    Move: {},
}


@pytest.fixture(autouse=True)
def _scene(db: None) -> None:
    server(queue_group(), "A")


def pages_of(model: Any) -> set[str]:
    prefix = f"resourcepool_{model._meta.model_name}_"
    urls = admin.site._registry[model].urls
    return {str(one.name).removeprefix(prefix) for one in urls if isinstance(one, URLPattern) and one.name}


@pytest.mark.parametrize("model", PAGES)
def test_no_page_is_forgotten_here(model: Any) -> None:
    operate = {"operate"} if model is not Move else set()
    assert pages_of(model) == {"changelist", "change", "history", "add", "delete", *operate}


@pytest.mark.parametrize("role", EVERYBODY)
@pytest.mark.parametrize("model", PAGES)
def test_a_page_opens_for_those_who_may_see_it_and_for_nobody_else(role: str, model: Any) -> None:
    client, pk, address = sign_in(role), model.objects.first().pk, LIST.format(model._meta.model_name)
    allowed = {"changelist": VIEWERS, "change": VIEWERS, "history": VIEWERS, **PAGES[model]}
    ends = {"changelist": "", "add": "add/"}
    for page, who in allowed.items():
        answer = client.get(address + ends.get(page, f"{pk}/{page}/"))
        refusal = 302 if role == "anonymous" else 403
        assert answer.status_code == (200 if role in who else refusal), page


@pytest.mark.parametrize("role", EVERYBODY)
@pytest.mark.parametrize("model", PAGES)
def test_an_action_is_for_those_who_may(role: str, model: Any) -> None:
    client, row, address = sign_in(role), model.objects.first(), LIST.format(model._meta.model_name)
    offered = admin.site._registry[model]
    assert {one.__name__ for one in offered.actions or ()} <= set(ACTIONS[model])
    for action, who in ACTIONS[model].items():
        before = list(type(row).objects.values())
        form = {"action": action, "_selected_action": [row.pk], "server": "B"}
        asks = client.post(address, form).content.decode()
        is_asked = 'name="confirmed"' in asks or "protected" in asks  # it has queues: see test_queue_groups
        assert is_asked is (role in who), action
        if role not in who:
            client.post(address, {**form, "confirmed": "yes", "post": "yes"})
            assert list(type(row).objects.values()) == before


AT_ONCE = {"changelist", "operate", "add", "change", "delete"}


@pytest.mark.parametrize("model", [QueueGroup, Server, Queue])
def test_what_changes_queues_is_seen_at_once_whatever_atomic_requests_says(model: Any) -> None:
    prefix = f"resourcepool_{model._meta.model_name}_"
    urls = [one for one in admin.site._registry[model].urls if isinstance(one, URLPattern)]
    without = {str(one.name) for one in urls if getattr(one.callback, "_non_atomic_requests", None)}
    assert without == {prefix + page for page in AT_ONCE}


ONE = [(QueueGroup, "pause"), (QueueGroup, "resume"), (Server, "drain"), (Server, "undrain"), (Queue, "pin")]


@pytest.mark.parametrize("role", EVERYBODY)
@pytest.mark.parametrize(("model", "name"), ONE)
def test_the_page_of_a_row_offers_it_to_operators_alone(role: str, model: Any, name: str) -> None:
    client, row, address = sign_in(role), model.objects.first(), LIST.format(model._meta.model_name)
    page = f"{address}{row.pk}/operate/{name}/"
    refusal = 302 if role == "anonymous" else 403
    assert client.get(page).status_code == (200 if role in OPERATORS else refusal)
    before = model.objects.filter(pk=row.pk).values().get()
    client.post(page, {"confirmed": "yes", "server": "B"})
    is_changed = model.objects.filter(pk=row.pk).values().get() != before
    assert is_changed is (role in OPERATORS and name != "undrain")
    for other in ("explode", "remove"):
        assert client.get(f"{address}{row.pk}/operate/{other}/").status_code == (
            404 if role in OPERATORS else refusal
        )


@pytest.mark.parametrize("role", sorted(set(EVERYBODY) - ADMINISTRATORS - {"anonymous"}))
def test_who_may_not_remove_does_not_learn_what_there_is(role: str) -> None:
    client = sign_in(role)
    for pk in (Queue.objects.first().pk, 987, "x"):  # type: ignore[union-attr]
        assert client.post(f"{LIST.format('queue')}{pk}/delete/", {"confirmed": "yes"}).status_code == 403
    assert (
        client.post(f"{LIST.format('queue')}add/", {"queue_group": "orders", "queues": "new"}).status_code
        == 403
    )
    assert not Queue.objects.filter(queue_id="new").exists()
