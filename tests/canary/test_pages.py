"""No page, fragment, file or answer of the admin reveals a secret or executes hostile text."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse

from resourcepool.history.recorder import recorder
from resourcepool.models import Event, Job, Move, Proxy, Queue, QueueGroup, Server
from resourcepool.operations import OPERATIONS
from tests.canary.planted import PASSWORD, SCRIPT, SEALED, formulas_in, found_in

LIST = "/admin/resourcepool/proxy/"
QUEUES = (QueueGroup, Server, Queue, Move)
FIELDS = {"scheme": "http", "host": "a.example", "port": 80, "username": "joe", "country": "", "tags": ""}
FORM = {**FIELDS, "weight": 1, "notes": "n", "new_password": PASSWORD}
ANSWERS = {"reason": "because", "duration": "2h", "name": "Ann", "confirmed": "yes"}
# Lists take these; each is tried with a word of the hostile text, and with one that nobody has.
QUERIES = ("", "?q=held", "?q=script", "?held_by==1", "?on_host=x", "?tag=a", "?in_country=us", "?state=held")
QUERIES += (f"?queue_group={SCRIPT}", "?status=asked", "?status=pinned", "?what=requested")
OF_PAGES = ("", "?span=15m", "?before=9-9")  # what is asked before something is done takes the first alone
# What else may stand in an address, and which values are tried.
ON_WORK = "pause resume drain undrain pin unpin retry discard fire cancel resize revoke-holder"
PARTS = {"name": [*OPERATIONS, *ON_WORK.split()], "app_label": ["resourcepool"], "url": ["nowhere"]}
SHARES = 12  # of all pages: to look at one takes less than to plant what it may show
NOT_OURS = re.compile(r"auth_|django_celery_beat_|testapp_|view_on_site|None")


def addresses(patterns: Any, before: str = "") -> Iterator[tuple[str, URLPattern]]:
    """Yield (name of the URL, its pattern) of everything below ``patterns``."""
    for one in patterns:
        if isinstance(one, URLPattern):
            yield before + str(one.name), one
        else:
            space = f"{one.namespace}:" if one.namespace else ""
            yield from addresses(one.url_patterns, before + space)


OURS = {
    name: pattern
    for name, pattern in addresses(get_resolver().url_patterns)
    if not NOT_OURS.search(name.removeprefix("admin:"))
}


def reversed_of(name: str, pattern: URLPattern, rows: dict[str, Any]) -> Iterator[str]:
    """Yield every address of this name there is to look at."""
    wanted = set(pattern.pattern.converters) | set(getattr(pattern.pattern, "regex", re.compile("")).groupindex)
    if not wanted:
        yield reverse(name)
    elif wanted == {"object_id"}:
        yield reverse(name, args=[key_in(name, rows)])
    elif wanted <= {"object_id", *PARTS}:
        (part,) = wanted - {"object_id"}
        own = {"object_id": key_in(name, rows)} if "object_id" in wanted else {}
        for value in PARTS[part]:
            yield reverse(name, kwargs={**own, part: value})
    else:
        pytest.fail(f"not walked: {name} with {wanted}; say in PARTS which values to try")


def key_in(name: str, rows: dict[str, Any]) -> str:
    """Return the key of the row that pages of this name are tried with, as it stands in addresses."""
    return str(quote(rows[name.split("_")[1]].pk))


@pytest.fixture
def rows(planted: Proxy) -> dict[str, Any]:
    """One row of each of our models, by the name of the model."""
    models = apps.get_app_config("resourcepool").get_models()
    first = {model._meta.model_name: model._base_manager.first() for model in models}
    return {**first, "proxy": planted}


def judged(answer: Any, *, may_be_sealed: bool = False) -> None:
    """Fail if this answer gives anything away."""
    where = f"{answer.request['REQUEST_METHOD']} {answer.request['PATH_INFO']}"
    body = (b"".join(answer.streaming_content) if answer.streaming else answer.content).decode()
    assert answer.status_code < 500, where
    assert not found_in(body), where
    assert not found_in(answer.headers), where
    assert answer["Content-Type"].startswith("text/csv") or SCRIPT not in body, where
    assert may_be_sealed or SEALED not in body, where
    if answer["Content-Type"].startswith("text/csv"):
        assert formulas_in(body) == [], where


@pytest.mark.parametrize("part", range(SHARES))
def test_a_page_shows_none(part: int, client: Client, rows: dict[str, Any]) -> None:
    of_lists = QUERIES if connection.vendor == "sqlite" else QUERIES[::3]  # elsewhere: that they are answered
    for name in sorted(OURS)[part::SHARES]:
        queries = of_lists if name.endswith("list") else OF_PAGES[:1] if name.endswith("operate") else OF_PAGES
        for address in reversed_of(name, OURS[name], rows):
            for query in queries:
                judged(client.get(address + query))


def test_pages_are_walked_at_all() -> None:
    walked = set(OURS)
    assert {
        "home",
        "admin:index",
        "admin:resourcepool_dashboard_live",
        "admin:resourcepool_proxy_operate",
    } <= walked
    assert len([name for name in walked if "resourcepool_" in name]) >= 30


@pytest.mark.parametrize("action", [*OPERATIONS, "export", "delete_selected"])
def test_an_action_shows_and_notes_none(action: str, client: Client, checkable: Proxy) -> None:
    chosen = {"_selected_action": [row.pk for row in Proxy.objects.all()], "action": action}
    judged(client.post(LIST, {**chosen, "index": 0}))
    judged(client.post(LIST, {**chosen, **ANSWERS}, follow=True))
    judged(client.post(LIST, {**chosen, "confirmed": "yes"}, follow=True))
    if action in OPERATIONS:
        page = reverse("admin:resourcepool_proxy_operate", args=[checkable.pk, action])
        judged(client.post(page, {"confirmed": "yes"}, follow=True))
        judged(client.post(page, ANSWERS, follow=True))
    nothing_is_stored()


def test_every_action_of_the_list_is_tried(client: Client, planted: Proxy) -> None:
    offered = re.findall(r'<option value="(\w+)">', client.get(LIST).content.decode().split('name="action"')[1])
    assert set(offered) <= {*OPERATIONS, "export", "delete_selected"}


ORDERS = [
    *((QueueGroup, name) for name in ("pause", "resume", "delete_selected")),
    *((Server, name) for name in ("drain", "undrain")),
    *((Queue, name) for name in ("pin", "unpin", "remove")),
]


@pytest.mark.parametrize(("model", "action"), ORDERS)
def test_an_action_on_queues_shows_and_notes_none(
    model: Any, action: str, client: Client, planted: Proxy
) -> None:
    page = f"/admin/resourcepool/{model._meta.model_name}/"
    chosen = {"_selected_action": [row.pk for row in model.objects.all()], "action": action}
    judged(client.post(page, chosen))
    for server in ("B", SCRIPT, "\x1b[31m"):
        judged(client.post(page, {**chosen, "confirmed": "yes", "post": "yes", "server": server}, follow=True))
    nothing_is_stored()


@pytest.mark.parametrize("model", QUEUES)
def test_every_action_on_queues_is_tried(model: Any, client: Client, planted: Proxy) -> None:
    body = client.get(f"/admin/resourcepool/{model._meta.model_name}/").content.decode()
    offered = re.findall(r'<option value="(\w+)">', body.split('name="action"')[-1])
    assert {(model, name) for name in offered} <= set(ORDERS)


@pytest.mark.parametrize("wrong", [SCRIPT, "=1+1", "a\n\x1b[31m", f"{SCRIPT}\n{SCRIPT}"])
def test_what_is_typed_in_of_queues_stays_text(wrong: str, client: Client, planted: Proxy) -> None:
    QueueGroup.objects.create(name=SCRIPT)
    form = {"queue_group": SCRIPT, "queues": wrong, "parameter": wrong, "labels": wrong}
    judged(client.post("/admin/resourcepool/queue/add/", form, follow=True))
    judged(client.post("/admin/resourcepool/queue/add/", {**form, "labels": ""}, follow=True))
    judged(
        client.post(
            "/admin/resourcepool/queuegroup/add/", {"name": wrong, "heartbeat_every": wrong}, follow=True
        )
    )


@pytest.mark.parametrize("keys", [True, False])
@pytest.mark.parametrize("wrong", [{}, {"port": 0}, {"host": "a b"}, {"host": PASSWORD, "port": "x"}])
def test_a_password_that_is_typed_in_is_not_shown_again(
    keys: bool, wrong: dict[str, Any], client: Client, planted: Proxy, settings: Any
) -> None:
    if not keys:
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "SECRET_KEYS": []}
    form = {**FORM, **wrong}
    if "host" in wrong and wrong["host"] == PASSWORD:
        form["host"] = "typed.example"
    judged(client.post(f"{LIST}add/", form, follow=True))
    judged(client.post(f"{LIST}{planted.pk}/change/", form, follow=True))
    judged(client.get(f"{LIST}{planted.pk}/history/"))
    nothing_is_stored()


@pytest.mark.parametrize(
    "content",
    [
        f"http://joe:{PASSWORD}@b.example:8\n",
        f"http://joe:{PASSWORD}@b.example:x\n",
        f"http://joe:{PASSWORD}\n",
        f"{PASSWORD}\n",
        f"host,port,password\nb.example,8,{PASSWORD}\n",
        f"host,port,password\nb.example,x,{PASSWORD}\n",
        f"host,port,pass\nb.example,8,{PASSWORD}\n",
        f"host,port\nb.example,8,{PASSWORD}\n",
        f"url,notes\nhttp://joe:{PASSWORD}@b.example:8,x\nhttp://joe:{PASSWORD}@b.example:8,x\n",
        f'host,port,password\nb.example,8,"{PASSWORD}\n',
        f"{PASSWORD}\0",
        f"host,port,password\nb.example,8,{PASSWORD}\xe9\n",
    ],
)
def test_an_import_shows_none_of_the_file(content: str, client: Client, planted: Proxy) -> None:
    for encoding in ("utf-8", "latin-1"):
        file = SimpleUploadedFile(f"{SCRIPT}.csv", content.encode(encoding))
        answer = client.post(f"{LIST}import/", {"file": file, "skip_bad": "on"})
        judged(answer, may_be_sealed=True)
        if answer.context and "sealed" in answer.context:
            judged(client.post(f"{LIST}import/", {"sealed": answer.context["sealed"]}, follow=True))
    judged(client.post(f"{LIST}import/", {"sealed": PASSWORD}, follow=True))
    nothing_is_stored()


def nothing_is_stored() -> None:
    """Fail if what was noted gives a secret away."""
    recorder.flush()
    for model in (Event, LogEntry, Job):
        for row in model.objects.values():
            assert not found_in(row), model
