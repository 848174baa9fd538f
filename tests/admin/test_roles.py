"""Permissions: every page and action of the admin, tried with every role."""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import NoReverseMatch, URLPattern, reverse

from resourcepool.models import Event, Job, Move, Proxy, Queue, QueueGroup, Sample, Server, Ticket
from resourcepool.operations import OPERATIONS
from resourcepool.signals import EventKind
from tests.admin.conftest import ROLES, event, lease, sign_in
from tests.admin.queues.scene import LIST as LISTS, queue_group, server
from tests.app.rows import columns, new

pytestmark = pytest.mark.django_db

EVERYBODY = ("anonymous", *ROLES, "superuser")
NOBODY: set[str] = set()
VIEWERS = {"viewer", "operator", "administrator", "superuser"}
OPERATORS = {"operator", "superuser"}
ADMINISTRATORS = {"administrator", "superuser"}

LIST = "/admin/resourcepool/proxy/"

# The roles that may open a page, by the end of its URL name; 404 and 403 mean "no".
VIEWED = {"changelist": VIEWERS, "change": VIEWERS, "history": VIEWERS}
RECORDS = {**VIEWED, "add": NOBODY, "delete": NOBODY}
CHANGED = {**VIEWED, "add": ADMINISTRATORS, "delete": ADMINISTRATORS, "operate": OPERATORS}
PAGES: dict[Any, dict[str, set[str]]] = {
    Proxy: {**CHANGED, "import": ADMINISTRATORS, "activity": VIEWERS},
    QueueGroup: CHANGED,
    Queue: CHANGED,
    Server: {**RECORDS, "operate": OPERATORS},
    **dict.fromkeys((Event, Job, Move, Sample, Ticket), RECORDS),
}
ACTIONS: dict[Any, dict[str, set[str]]] = {
    Proxy: {name: OPERATORS for name in OPERATIONS if name != "check"},
    QueueGroup: {"pause": OPERATORS, "resume": OPERATORS},
    Queue: {"pin": OPERATORS, "unpin": OPERATORS, "remove": ADMINISTRATORS},
    Server: {"drain": OPERATORS, "undrain": OPERATORS},
}


def patterns(model: Any) -> dict[str, URLPattern]:
    """Return the URL pattern of each admin page of ``model``."""
    prefix = f"{model._meta.app_label}_{model._meta.model_name}_"
    urls = admin.site._registry[model].urls
    return {str(one.name).removeprefix(prefix): one for one in urls if isinstance(one, URLPattern) and one.name}


def row_of(model: Any) -> Any:
    if model in (QueueGroup, Queue, Server, Move):
        server(queue_group(), "A")
        return model.objects.first()
    if model is Event:
        return event(new(Proxy))
    if model is Sample:
        return Sample.objects.create(pool="resourcepool.proxy", minute="2026-11-21T00:00:00Z")
    return new(model)


def url_of(model: Any, page: str, row: Any) -> str:
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"
    for args in ([], [row.pk], [row.pk, next(iter(ACTIONS.get(model, "-")))]):
        try:
            return reverse(name, args=args)
        except NoReverseMatch:
            continue
    raise AssertionError(f"how is {name} reached?")


@pytest.mark.parametrize("model", PAGES)
def test_all_pages_are_covered(model: Any) -> None:
    assert set(patterns(model)) == set(PAGES[model])


@pytest.mark.parametrize("role", EVERYBODY)
@pytest.mark.parametrize("model", PAGES)
def test_a_page_opens_only_with_permission(role: str, model: Any) -> None:
    client, row = sign_in(role), row_of(model)
    for page, allowed in PAGES[model].items():
        url = url_of(model, page, row)
        answers = [client.get(url), client.post(url, {})]
        if role == "anonymous":
            assert all(one["Location"].startswith("/admin/login/") for one in answers), page
        elif role in allowed:
            assert answers[0].status_code == 200, page
            assert answers[1].status_code in (200, 302, 403), page
        else:
            assert [one.status_code for one in answers] == [403, 403], page


@pytest.mark.parametrize("model", ACTIONS)
def test_changes_are_seen_at_once_whatever_atomic_requests_says(model: Any) -> None:
    found = patterns(model).items()
    without = {page for page, one in found if getattr(one.callback, "_non_atomic_requests", None)}
    assert without == {"changelist", "operate", "add", "change", "delete"}


ANSWERS = {"reason": "because", "duration": "2h", "name": "Ann", "server": "B", "confirmed": "yes"}


def ready_for(model: Any, name: str) -> Any:
    """Return a row that the operation changes."""
    row = row_of(model)
    if model is Proxy:
        lease(row)
        event(row, EventKind.LEAKED)
    if name == "return_to_service":
        Proxy.objects.filter(pk=row.pk).drain("test")
    return row


@pytest.mark.parametrize("role", EVERYBODY)
@pytest.mark.parametrize(("model", "name"), [(model, name) for model in ACTIONS for name in ACTIONS[model]])
def test_an_operation_needs_permission_in_list_and_page(role: str, model: Any, name: str) -> None:
    client, is_allowed, row = sign_in(role), role in ACTIONS[model][name], ready_for(model, name)
    address = LISTS.format(model._meta.model_name)
    for is_list in (True, False):
        row = ready_for(model, name) if model is Proxy else row
        before = columns(row)
        if is_list:
            client.post(address, {**ANSWERS, "action": name, "_selected_action": [str(row.pk)]})
        else:
            client.post(f"{address}{row.pk}/{'delete/' if name == 'remove' else f'operate/{name}/'}", ANSWERS)
        assert is_allowed or columns(row) == before
        assert LogEntry.objects.filter(object_id=row.pk).exists() is is_allowed
        LogEntry.objects.all().delete()


@pytest.mark.parametrize("role", sorted(set(EVERYBODY) - {"anonymous"}))
@pytest.mark.parametrize("model", ACTIONS)
def test_without_permission_an_operation_reveals_nothing(role: str, model: Any) -> None:
    client, row, address = sign_in(role), row_of(model), LISTS.format(model._meta.model_name)
    for pk in (row.pk, row.pk + 1, "x"):
        for name in ("explode", "remove") if role in OPERATORS else (*ACTIONS[model], "explode"):
            answer = client.get(f"{address}{pk}/operate/{name}/")
            assert answer.status_code == (404 if role in OPERATORS else 403), name
        if model is Queue and role not in ADMINISTRATORS:
            assert client.post(f"{address}{pk}/delete/", {"confirmed": "yes"}).status_code == 403


@pytest.mark.parametrize("role", EVERYBODY)
def test_the_export_needs_permission_to_view_the_list(role: str) -> None:
    client, row = sign_in(role), new(Proxy)
    answer = client.post(LIST, {"action": "export", "_selected_action": [row.pk], "index": 0})
    assert (answer.get("Content-Type", "").startswith("text/csv")) is (role in VIEWERS)


IMPORT = f"{LIST}import/"
ONE = b"http://a.example:80\n"


def upload(client: Client) -> Any:
    """Import a file, retiring proxies that are not in it."""
    return client.post(IMPORT, {"file": SimpleUploadedFile("one.txt", ONE), "sync": "on"})


@pytest.mark.parametrize("role", sorted(ADMINISTRATORS))
def test_an_import_retires_and_returns_only_with_the_operate_permission(role: str) -> None:
    client, old, retired = sign_in(role), new(Proxy), new(Proxy, host="a.example", port=80)
    Proxy.objects.filter(pk=retired.pk).retire()
    offered = client.get(IMPORT).context["form"].fields["sync"]
    assert offered.disabled is (role not in OPERATORS)
    client.post(IMPORT, {"sealed": upload(client).context["sealed"]})
    assert columns(old)["in_service"] is (role not in OPERATORS)
    assert columns(retired)["in_service"] is (role in OPERATORS)


def test_a_plan_that_retires_is_refused_once_the_permission_is_removed() -> None:
    client, old = sign_in("superuser"), new(Proxy)
    sealed = upload(client).context["sealed"]
    user = User.objects.get()
    user.is_superuser = False
    user.save()
    user.user_permissions.set(Permission.objects.filter(codename__in=ROLES["administrator"]))
    assert client.post(IMPORT, {"sealed": sealed}).status_code == 403
    assert columns(old)["in_service"] is True
    assert Proxy.objects.count() == 1


@pytest.mark.parametrize("role", EVERYBODY)
@pytest.mark.parametrize("model", ACTIONS)
def test_the_action_menu_shows_only_permitted_actions(role: str, model: Any, settings: Any) -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": {"resourcepool.Proxy": {"url": "http://x/"}}}
    client = sign_in(role)
    row_of(model)
    page = client.get(LISTS.format(model._meta.model_name)).content.decode()
    for name, allowed in ({**ACTIONS[model], "check": OPERATORS} if model is Proxy else ACTIONS[model]).items():
        assert (f'<option value="{name}">' in page) is (role in allowed)
    is_deletable = role in ADMINISTRATORS and model in (Proxy, QueueGroup)  # queues are removed by an operation
    assert ('<option value="delete_selected">' in page) is is_deletable
    assert ('id="import-link"' in page) is (model is Proxy and role in ADMINISTRATORS)


@pytest.mark.parametrize("role", ["operator", "superuser"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_change_needs_post_and_a_csrf_token(role: str, name: str) -> None:
    client, row = sign_in(role), new(Proxy)
    lease(row)
    before = columns(row)
    url = f"{LIST}{row.pk}/operate/{name}/"
    assert client.get(url, ANSWERS).status_code == 200
    client.handler.enforce_csrf_checks = True
    assert client.post(url, ANSWERS).status_code == 403
    assert client.post(LIST, {**ANSWERS, "action": name, "_selected_action": [row.pk]}).status_code == 403
    assert columns(row) == before
