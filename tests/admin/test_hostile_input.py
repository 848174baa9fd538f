"""Hostile input in forms and URLs is answered with a message, never with a server error."""

import json
import re
from typing import Any
from urllib.parse import quote

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from resourcepool.models import Proxy, Queue, QueueGroup, Server
from tests.admin.conftest import sign_in
from tests.admin.queues.scene import queue_group, server
from tests.app.rows import new
from tests.case_sample import parts

LIST = "/admin/resourcepool/{}/"
HALF = "\\ud800"  # half a surrogate pair, in JSON
VALUES = [
    *("", "x", "-1", "1e999", "nan", "9" * 40, "9" * 5_000, "a\0b", "a\r\nb", "\x1b[31m"),
    *("\U0001f600\u202e", "ß" * 3_000),
    *("[" * 5_000, '{"a":' * 2_000, '{"a": ' + "9" * 5_000 + "}", "null", "[]", '{"a": 1}'),
    f'{{"a": "{HALF}"}}',
    *(f'"{HALF}"', f'{{"{HALF}": "a"}}', "9999-12-31T23:59", "0001-01-01T00:00", "١٢", "0..9999999", "gAAAA"),
]
NAME = re.compile(r"<(?:input|textarea|select)[^>]*? name=\"([^\"]+)\"")

PROXY = {"scheme": "http", "host": "a.example", "port": "80", "weight": "1"}
KIND = {
    "name": "new",
    "strategy": "sticky",
    "heartbeat_every": "1",
    "judge_dead_after": "6",
    "reload_every": "0.2",
}
KIND |= {"handover_timeout": "60"}
ASKED = {"confirmed": "yes", "reason": "r", "name": "Ann", "duration": "5h", "server": "A"}
MADE = {"queue_group": "orders", "queues": "new", "parameter": "", "labels": "{}"}

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> Client:
    found = sign_in("superuser")
    found.raise_request_exception = False
    return found


@pytest.fixture
def rows() -> dict[str, Any]:
    orders = queue_group()
    return {
        "proxy": new(Proxy),
        "server": server(orders, "A"),
        "queuegroup": orders,
        "queue": Queue.objects.first(),
    }


# Forms: the page of a model ({}: the row's key), and valid values of the other fields.
PAGES: list[tuple[str, str, dict[str, str]]] = [
    ("proxy", "add/", PROXY),
    ("proxy", "{}/change/", PROXY),
    ("proxy", "{}/delete/", {"post": "yes"}),
    ("proxy", "import/", {"sync": "on", "sealed": "x"}),
    *(("proxy", f"{{}}/operate/{name}/", ASKED) for name in ("free", "quarantine", "reserve")),
    ("queuegroup", "add/", KIND),
    ("queuegroup", "{}/change/", KIND),
    ("queuegroup", "{}/operate/pause/", {"confirmed": "yes"}),
    ("server", "{}/operate/drain/", {"confirmed": "yes"}),
    ("queue", "{}/operate/pin/", {"confirmed": "yes", "server": "A"}),
    ("queue", "add/", MADE),
    ("queue", "{}/delete/", {"confirmed": "yes"}),
]


def broken(client: Client, address: str, valid: dict[str, str], names: set[str]) -> list[str]:
    """Return the values that, in place of a valid one, cause a server error."""
    tried = (
        (name, value, client.post(address, {**valid, name: value}))
        for name, part in zip(sorted(names), parts(VALUES), strict=False)
        for value in part
    )
    return [ascii(f"{name}={value[:40]}") for name, value, answer in tried if not is_answered(answer)]


def is_answered(answer: Any) -> bool:
    return bool(answer.status_code < 500)


@pytest.mark.parametrize(
    ("model", "page", "valid"), PAGES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_no_input_breaks_a_page(
    model: str, page: str, valid: dict[str, str], client: Client, rows: dict[str, Any]
) -> None:
    address = LIST.format(model) + page.format(rows[model].pk)
    found = {*NAME.findall(client.get(address).content.decode()), *valid}
    names = {name for name in found if not name.startswith("_")} - {"csrfmiddlewaretoken", "file", "next"}
    if "operate" in page and "free" not in page:  # these pages have the same controls
        names -= CONTROLS
    assert broken(client, address, valid, names) == []


@pytest.mark.parametrize("model", ["proxy", "queuegroup", "server", "queue", "event"])
@pytest.mark.parametrize(
    "page", ["", "change/", "delete/", "history/", "activity/", "operate/revoke/", "operate/pin/"]
)
def test_no_key_in_a_url_breaks_a_page(model: str, page: str, client: Client) -> None:
    keys = [quote(value[:2_000], safe="") for value in VALUES if value] + [
        *("%ED%A0%80", "%FF", "_5F", "_00", "..%2F"),
    ]
    assert [key[:40] for key in keys if not is_answered(client.get(LIST.format(model) + f"{key}/{page}"))] == []


SENDS = ('name="_save"', 'name="confirmed"', 'name="post"', 'type="file"')


def test_all_forms_are_covered() -> None:
    tried = {(model, page.split("/")[-2]) for model, page, _ in PAGES}
    client, orders = sign_in("superuser"), queue_group()
    one = {Proxy: new(Proxy), QueueGroup: orders, Queue: Queue.objects.first(), Server: server(orders, "A")}
    for model, row in one.items():
        name = str(model._meta.model_name)
        for page in ("add", "import", f"{row.pk}/change", f"{row.pk}/delete"):
            answer = client.get(f"{LIST.format(name)}{page}/", follow=True)
            has_form = any(mark in answer.content.decode() for mark in SENDS)
            assert not has_form or (name, page.split("/")[-1]) in tried, page


CONTROLS = {"action", "index", "select_across", "_selected_action", "grant", "confirmed"}
# Every list has the same controls, but each model parses the selected keys itself.
ACTIONS = [
    ("proxy", "free", CONTROLS),
    ("proxy", "delete_selected", {"_selected_action"}),
    ("queuegroup", "pause", {"_selected_action"}),
    ("server", "drain", {"_selected_action"}),
    ("queue", "remove", CONTROLS),
]


@pytest.mark.parametrize(("model", "action", "names"), ACTIONS)
def test_no_input_of_an_action_breaks_a_list(
    model: str, action: str, names: set[str], client: Client, rows: dict[str, Any]
) -> None:
    valid = {"action": action, "_selected_action": str(rows[model].pk), "index": "0"}
    assert broken(client, LIST.format(model), valid, names) == []


@pytest.mark.parametrize("content", VALUES, ids=range(len(VALUES)))
@pytest.mark.parametrize("head", ["", "host,port,username,password,tags,weight,notes\n"])
def test_no_file_breaks_the_import(content: str, head: str, client: Client) -> None:
    for text in (
        *(content, f"a.example,80,{content}", f"a.example,{content}", f"http://a:{content}@a.example:80"),
    ):
        file = SimpleUploadedFile(content[:80] or "x", (head + text).encode())
        assert is_answered(client.post(LIST.format("proxy") + "import/", {"file": file, "skip_bad": "on"}))


@pytest.mark.parametrize("typed", [value for value in VALUES if value.startswith(("[", "{", '"'))])
def test_invalid_labels_are_reported_and_stay_in_the_form(typed: str, client: Client) -> None:
    queue_group()
    answer = client.post(LIST.format("queue") + "add/", {**MADE, "labels": typed})
    if typed == "[]":
        assert Queue.objects.filter(queue_id="new", labels={}).exists()
    else:
        form = answer.context["form"]
        assert form.errors["labels"]
        assert form["labels"].value() == typed


def test_valid_labels_are_saved() -> None:
    client = sign_in("superuser")
    queue_group()
    client.post(LIST.format("queue") + "add/", {**MADE, "labels": json.dumps({"zone": "eu \u00fc"})})
    assert Queue.objects.get(queue_id="new").labels == {"zone": "eu \u00fc"}
