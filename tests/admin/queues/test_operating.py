"""Operations on queue groups, servers and queues go through a plan, never past a working server."""

from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client

from resourcepool.admin import operations_mixin
from resourcepool.db.dialect import DbLater
from resourcepool.models import Queue, Server
from resourcepool.queues import administration
from tests.admin.conftest import text
from tests.admin.queues.scene import LIST, queue_group, server

pytestmark = pytest.mark.django_db


def do(client: Client, action: str, rows: Any, /, **entered: Any) -> Any:
    """Choose these rows of the list, and confirm."""
    address = LIST.format(rows[0]._meta.model_name)
    form = {"action": action, "_selected_action": [row.pk for row in rows], **entered}
    assert 'name="confirmed"' in text(client.post(address, form))
    return client.post(address, {**form, "confirmed": "yes"}, follow=True)


def queues(*ids: str) -> list[Queue]:
    return list(Queue.objects.filter(queue_id__in=ids).order_by("pk"))


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[31m", "x" * 101])
def test_a_name_that_no_server_can_have_is_refused(operator: Client, name: str) -> None:
    queue_group()
    (row,) = queues("q0")
    form = {"action": "pin", "_selected_action": [row.pk], "confirmed": "yes", "server": name}
    assert "errorlist" in text(operator.post(LIST.format("queue"), form))
    row.refresh_from_db()
    assert row.pin == ""


def test_what_is_removed_goes_when_its_server_has_finished(administrator: Client) -> None:
    orders = queue_group()
    do(administrator, "remove", queues("q0"))
    assert not queues("q0")
    server(orders, "A")
    do(administrator, "remove", queues("q1", "q2"))
    assert [(row.is_retiring, row.cur_server.name) for row in queues("q1", "q2")] == [(True, "A")] * 2
    assert {row.is_retiring for row in queues("q3")} == {False}


def test_the_page_to_delete_a_queue_removes_it_the_same_way(administrator: Client) -> None:
    orders = queue_group()
    server(orders, "A")
    (row,) = queues("q1")
    address = f"{LIST.format('queue')}{row.pk}/delete/"
    assert "orders / q1" in text(administrator.get(address))
    administrator.post(address, {"post": "yes"})
    row.refresh_from_db()
    assert not row.is_retiring
    assert administrator.post(address, {"confirmed": "yes"}).status_code == 302
    row.refresh_from_db()
    assert row.is_retiring


def test_queues_of_several_queue_groups_are_changed_each_in_its_own(operator: Client) -> None:
    queue_group("a", 1)
    queue_group("b", 1)
    assert "2 queues were pinned." in text(do(operator, "pin", queues("q0"), server="B"))
    assert {row.pin for row in queues("q0")} == {"B"}


def test_what_could_not_be_done_is_said_and_nothing_is_half_done(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue_group("a", 2)
    queue_group("b", 1)
    pin = administration.pin

    def fail(name: str, *args: Any, **more: Any) -> int:
        if name == "b":
            raise OperationalError("gone")
        return pin(name, *args, **more)

    monkeypatch.setattr(administration, "pin", fail)
    said = text(do(operator, "pin", queues("q0", "q1"), server="B"))
    assert "gone" in said
    assert "1 not changed" in said
    assert "2 queues were pinned." in said


def test_a_server_that_has_left_in_between_is_said(operator: Client) -> None:
    first = server(queue_group(), "A")
    Server.objects.update(busy_before=DbLater(-5))
    said = text(do(operator, "drain", [first]))
    assert "no server is running" in said
    assert "1 not changed" in said


def test_more_than_can_be_done_at_once_is_cut(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations_mixin, "MAX_QUEUES_AT_ONCE", 3)
    monkeypatch.setattr(operations_mixin, "SHOWN", 2)
    queue_group()
    every = [row.pk for row in Queue.objects.all()]
    form = {"action": "pin", "_selected_action": every, "server": "B"}
    page = text(operator.post(LIST.format("queue"), form))
    assert "only the first 3" in page
    assert "and 1 more" in page
    operator.post(LIST.format("queue"), {**form, "confirmed": "yes"})
    assert Queue.objects.filter(pin="B").count() == 3


def test_the_page_of_a_row_offers_what_would_change_something(operator: Client) -> None:
    orders = queue_group()
    first = server(orders, "A")
    (queue,) = queues("q0")

    def offered(row: Any) -> set[str]:
        page = text(operator.get(f"{LIST.format(row._meta.model_name)}{row.pk}/change/"))
        return {
            name
            for name in ("pause", "resume", "drain", "undrain", "pin", "unpin")
            if f"operate-{name}" in page
        }

    assert (offered(orders), offered(first), offered(queue)) == ({"pause"}, {"drain"}, {"pin"})
    for row, name in ((orders, "pause"), (first, "drain"), (queue, "pin")):
        page = f"{LIST.format(row._meta.model_name)}{row.pk}/operate/{name}/"
        answer = operator.post(page, {"confirmed": "yes", "server": "B"})
        assert answer["Location"] == f"{LIST.format(row._meta.model_name)}{row.pk}/change/"
    assert (offered(orders), offered(first)) == ({"resume"}, {"undrain"})
    assert offered(queue) == {"pin", "unpin"}
