"""A canary: a password is planted, and then nothing that the admin shows, sends or logs may contain it."""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, override_settings

from resourcepool.admin.operations import OPERATIONS
from resourcepool.history.recorder import recorder
from resourcepool.models import Event, Proxy
from tests.admin.conftest import event, sign_in

CANARY = "c4nary-s3cret"
LIST = "/admin/resourcepool/proxy/"
FORM = {
    "scheme": "http",
    "host": "a.example",
    "port": 80,
    "username": "joe",
    "country": "",
    "tags": "",
    "weight": 1,
}
ANSWERS = {"reason": "because", "amount": "2", "unit": "hours", "name": "Ann", "confirmed": "yes"}

pytestmark = pytest.mark.django_db(transaction=True)


def everything(client: Client, row: Proxy) -> list[Any]:
    """Fetch every page, do every operation, make every mistake; return the answers."""
    own, chosen = f"{LIST}{row.pk}/", {"_selected_action": [row.pk]}
    answers = [client.get(url) for url in (LIST, f"{LIST}?q={CANARY[:4]}x", f"{LIST}add/", f"{LIST}import/")]
    answers += [client.get(f"{own}{page}/") for page in ("change", "history", "timeline", "delete")]
    answers.append(client.post(f"{own}change/", {**FORM, "notes": "", "new_password": CANARY, "port": 0}))
    answers.append(client.post(f"{own}change/", {**FORM, "notes": "n", "new_password": CANARY}, follow=True))
    with override_settings(RESOURCEPOOL={}):
        answers.append(client.get(f"{own}change/"))
        answers.append(client.post(f"{own}change/", {**FORM, "notes": "", "new_password": CANARY}))
        answers.append(client.post(LIST, {**chosen, "action": "export", "index": 0}))
    for name in OPERATIONS:
        answers += [
            client.get(f"{own}operate/{name}/"),
            client.post(f"{own}operate/{name}/", {"confirmed": "yes"}),
        ]
        answers.append(client.post(LIST, {**chosen, "action": name, "index": 0}))
        answers.append(client.post(LIST, {**chosen, **ANSWERS, "action": name}, follow=True))
    answers.append(client.post(LIST, {**chosen, "action": "export", "index": 0}))
    for content in (f"http://joe:{CANARY}@b.example:8\n", f"http://joe:{CANARY}@b.example:x\n", f"{CANARY}\0"):
        answers.append(client.post(f"{LIST}import/", {"file": SimpleUploadedFile("p", content.encode())}))
    plan = answers[-3].context["sealed"]
    answers.append(client.post(f"{LIST}import/", {"sealed": plan}, follow=True))
    for model in admin.site._registry:
        if model._meta.app_label == "resourcepool":
            answers.append(client.get(f"/admin/resourcepool/{model._meta.model_name}/"))
    return answers


def test_a_password_is_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    client = sign_in("superuser")
    with override_settings(RESOURCEPOOL={**OWN, "HISTORY": True}):
        row = Proxy.objects.create(host="a.example", port=80, username="joe", password=CANARY)
        event(row, reason="for the timeline")
        for answer in everything(client, row):
            body = answer.getvalue() if answer.streaming else answer.content
            assert CANARY not in body.decode(), answer.request["PATH_INFO"]
            assert answer.status_code < 500
        recorder.flush()
        row.refresh_from_db()
        assert row.password == CANARY, "it was planted, and is still there"
    assert Proxy.objects.filter(host="b.example").exists()
    for one in (*Event.objects.values(), *LogEntry.objects.values()):
        assert CANARY not in str(one)
    assert CANARY not in caplog.text


def _own() -> dict[str, Any]:
    from django.conf import settings

    return dict(settings.RESOURCEPOOL)


OWN = _own()
