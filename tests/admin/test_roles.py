"""Permissions: every page and action of the admin, tried with every role."""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import NoReverseMatch, URLPattern, reverse

from resourcepool.models import Event, Job, Proxy, Sample, Ticket
from resourcepool.operations import OPERATIONS
from resourcepool.signals import EventKind
from tests.admin.conftest import ROLES, event, lease, sign_in
from tests.app.rows import columns, new

pytestmark = pytest.mark.django_db

EVERYBODY = ("anonymous", *ROLES, "superuser")
VIEWERS = {"viewer", "operator", "administrator", "superuser"}
OPERATORS = {"operator", "superuser"}
ADMINISTRATORS = {"administrator", "superuser"}

LIST = "/admin/resourcepool/proxy/"

# The roles that may open a page, by the end of its URL name; 404 and 403 mean "no".
PROXY_PAGES = {
    "changelist": VIEWERS,
    "add": ADMINISTRATORS,
    "import": ADMINISTRATORS,
    "history": VIEWERS,
    "delete": ADMINISTRATORS,
    "change": VIEWERS,
    "activity": VIEWERS,
    "operate": OPERATORS,
}
RECORD_PAGES: dict[str, set[str]] = {
    "changelist": VIEWERS,
    "add": set(),
    "history": VIEWERS,
    "delete": set(),
    "change": VIEWERS,
}
REDIRECTS = {None}  # Django's unnamed redirect from the old URL of a row


def pages_of(model: Any) -> list[str]:
    """Return the names of all admin pages of ``model``."""
    prefix = f"{model._meta.app_label}_{model._meta.model_name}_"
    urls = admin.site._registry[model].urls
    names = [one.name for one in urls if isinstance(one, URLPattern)]
    return [name.removeprefix(prefix) for name in names if name not in REDIRECTS]


def row_of(model: Any) -> Any:
    if model is Event:
        return event(new(Proxy))
    if model is Sample:
        return Sample.objects.create(pool="resourcepool.proxy", minute="2026-11-21T00:00:00Z")
    return new(model)


def url_of(model: Any, page: str, row: Any) -> str:
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"
    for args in ([], [row.pk], [row.pk, "revoke"]):
        try:
            return reverse(name, args=args)
        except NoReverseMatch:
            continue
    raise AssertionError(f"how is {name} reached?")


def test_all_pages_are_covered() -> None:
    assert set(pages_of(Proxy)) == set(PROXY_PAGES)
    for model in (Event, Job, Sample, Ticket):
        assert set(pages_of(model)) == set(RECORD_PAGES)


@pytest.mark.parametrize("role", EVERYBODY)
@pytest.mark.parametrize("model", [Proxy, Event, Job, Sample, Ticket])
def test_a_page_opens_only_with_permission(role: str, model: Any) -> None:
    client, row = sign_in(role), row_of(model)
    allowed = PROXY_PAGES if model is Proxy else RECORD_PAGES
    for page in pages_of(model):
        url = url_of(model, page, row)
        for answer in (client.get(url), client.post(url, {})):
            if role == "anonymous":
                assert answer.status_code == 302, page
                assert answer["Location"].startswith("/admin/login/")
            elif role in allowed[page]:
                assert answer.status_code in (200, 302, 403), page
            else:
                assert answer.status_code == 403, page
        if role in allowed[page]:
            assert client.get(url).status_code == 200, page


ANSWERS = {"reason": "because", "duration": "2h", "name": "Ann", "confirmed": "yes"}


@pytest.mark.parametrize("role", EVERYBODY)
@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "check"])
def test_an_operation_needs_permission_in_list_and_page(role: str, name: str) -> None:
    client = sign_in(role)
    for is_one in (True, False):
        row = new(Proxy)
        lease(row)
        if name == "return_to_service":
            Proxy.objects.filter(pk=row.pk).drain("test")
        event(row, EventKind.LEAKED)
        before = columns(row)
        if is_one:
            client.post(f"{LIST}{row.pk}/operate/{name}/", ANSWERS)
        else:
            client.post(LIST, {**ANSWERS, "action": name, "_selected_action": [str(row.pk)]})
        assert (columns(row) != before) is (role in OPERATORS and name != "acknowledge")
        assert LogEntry.objects.filter(object_id=row.pk).exists() is (role in OPERATORS)


@pytest.mark.parametrize("role", sorted(set(EVERYBODY) - OPERATORS - {"anonymous"}))
def test_without_permission_an_operation_reveals_nothing(role: str) -> None:
    client, row = sign_in(role), new(Proxy)
    for pk in (row.pk, row.pk + 1):
        assert client.get(f"{LIST}{pk}/operate/revoke/").status_code == 403
        assert client.get(f"{LIST}{pk}/operate/explode/").status_code == 403
        if role not in VIEWERS:
            assert client.get(f"{LIST}{pk}/activity/").status_code == 403


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
def test_the_action_menu_shows_only_permitted_actions(role: str, settings: Any) -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": {"resourcepool.Proxy": {"url": "http://x/"}}}
    client = sign_in(role)
    new(Proxy)
    page = client.get(LIST).content.decode()
    for name in OPERATIONS:
        assert (f'<option value="{name}">' in page) is (role in OPERATORS)
    assert ('id="import-link"' in page) is (role in ADMINISTRATORS)


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
