"""No error report reveals a secret: neither the mail to the admins nor the DEBUG page."""

import logging
from collections.abc import Iterator
from typing import Any

import django
import pytest
from django.core import mail
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils.log import AdminEmailHandler

from resourcepool.models import Proxy
from tests.canary.planted import DATABASE, PASSWORD, found_in
from tests.canary.test_pages import FORM, LIST


def fail(*_: Any, **__: Any) -> Any:
    raise RuntimeError("deep inside")


@pytest.fixture
def reports(settings: Any) -> Iterator[Any]:
    """Have error reports mailed to the admins, and return them as they come."""
    settings.ADMINS = [("Ann", "ann@example.com")] if django.VERSION < (6, 0) else ["ann@example.com"]
    settings.CELERY_BROKER_URL = f"amqp://joe:{DATABASE}@broker/"
    handler, logger = AdminEmailHandler(include_html=True), logging.getLogger("django.request")
    logger.addHandler(handler)
    mail.outbox = []
    yield mail.outbox
    logger.removeHandler(handler)


def text_of(report: Any) -> str:
    """Return all of a report; the one of the handler above has the frames with their variables."""
    return "\n".join([report.subject, report.body, *(str(content) for content, _ in report.alternatives)])


def uploaded() -> SimpleUploadedFile:
    return SimpleUploadedFile("p.csv", f"http://joe:{PASSWORD}@b.example:8\n".encode())


@pytest.mark.parametrize(
    ("where", "address", "form"),
    [
        ("django.db.models.sql.compiler.SQLInsertCompiler.execute_sql", "add/", FORM),
        ("django.db.models.sql.compiler.SQLUpdateCompiler.execute_sql", "{pk}/change/", FORM),
        ("resourcepool.encryption.field.encrypt", "add/", FORM),
        ("resourcepool.proxies.importer.encrypt", "import/", None),
        ("resourcepool.admin.resources.import_pages.encrypt", "import/", None),
        ("resourcepool.proxies.fields.unquote_to_bytes", "import/", None),
        (
            "resourcepool.admin.operations_mixin.read_clock",
            "{pk}/operate/drain/",
            {"confirmed": "yes", "reason": "x", "duration": "18:30"},
        ),
    ],
)
def test_a_mail_to_the_admins_has_none(
    where: str, address: str, form: Any, client: Client, planted: Proxy, reports: Any, monkeypatch: Any
) -> None:
    page = LIST + address.format(pk=planted.pk)
    form = {"file": uploaded()} if form is None else form
    monkeypatch.setattr(where, fail)
    answer = client.post(page, form)
    monkeypatch.undo()
    assert answer.status_code == 500
    assert not found_in(answer.content.decode())
    assert reports
    for said in map(text_of, reports):
        assert "deep inside" in said
        assert not found_in(said)


@pytest.mark.parametrize("address", ["", "{pk}/change/", "{pk}/activity/", "import/"])
def test_the_page_that_debug_shows_has_none(
    address: str, client: Client, planted: Proxy, reports: Any, settings: Any, monkeypatch: Any
) -> None:
    settings.DEBUG = True
    monkeypatch.setattr("resourcepool.admin.resources.columns.state_details", fail)
    monkeypatch.setattr("resourcepool.status.event_text._sentence", fail)
    monkeypatch.setattr("resourcepool.admin.resources.import_pages.UploadForm", fail)
    answer = client.get(LIST + address.format(pk=planted.pk))
    said = answer.content.decode()
    assert answer.status_code == 500
    assert "Local vars" in said
    assert "DATABASE_URL" in said
    assert not found_in(said)
    assert planted.password == PASSWORD
