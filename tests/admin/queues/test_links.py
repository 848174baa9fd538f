"""Links between the pages: the owner of a queue, its other queues, and the moves of a queue."""

import re
from html import unescape
from typing import Any

import pytest
from django.contrib.admin import AdminSite, site
from django.test import Client

from resourcepool.admin import columns
from resourcepool.db.dialect import DbLater
from resourcepool.models import Move, Queue, Server
from resourcepool.queues import administration
from tests.admin.conftest import text
from tests.admin.queues.scene import LIST, queue_group, server

pytestmark = pytest.mark.django_db

QUEUES, SERVERS, QUEUE_GROUPS = (LIST.format(kind) for kind in ("queue", "server", "queuegroup"))
ODD = "a&b='<c>?#%2f"


def follow(client: Client, page: str, field: str) -> list[Any]:
    """Click on the link in this field of a page, and return the rows of the list it leads to."""
    shown = re.search(rf'field-{field}"?.*?</(?:td|th|fieldset)>', text(client.get(page)), re.DOTALL)
    assert shown, field
    address = re.search(r'href="([^"]+)"', shown[0])
    assert address, shown[0]
    answer = client.get(unescape(address[1]))
    assert answer.status_code == 200
    return list(answer.context["cl"].result_list) if "cl" in answer.context else [answer.context["original"]]


def test_a_queue_leads_to_its_owner_and_to_its_own_moves(viewer: Client) -> None:
    orders = queue_group(ODD, 0)
    first = server(orders, "A")
    administration.add_queues(ODD, ["x", ODD])
    queue = Queue.objects.get(queue_id=ODD)
    assert follow(viewer, f"{QUEUES}{queue.pk}/change/", "owner") == [first]
    assert follow(viewer, QUEUES, "owner") == [first]
    moved = follow(viewer, f"{QUEUES}{queue.pk}/change/", "moves")
    assert [(move.queue_id, move.what) for move in moved] == [(ODD, "assigned")]


def test_a_queue_that_is_asked_for_leads_to_who_asked(viewer: Client) -> None:
    orders = queue_group(queues=2)
    server(orders, "A")
    second = server(orders, "B")
    asked = Queue.objects.get(req_server=second)
    assert follow(viewer, f"{QUEUES}{asked.pk}/change/", "requested_by") == [second]


@pytest.mark.parametrize("page", [SERVERS, SERVERS + "{}/change/"])
def test_a_server_leads_to_what_it_has_and_has_asked_for(viewer: Client, page: str) -> None:
    orders = queue_group(queues=4)
    second = server(orders, "B")
    mine = server(orders, "A")
    Server.objects.filter(pk=second.pk).delete()
    Queue.objects.filter(cur_server=second).exclude(req_server=mine).update(cur_server=None)
    expected = {queue.queue_id for queue in Queue.objects.filter(req_server=mine)}
    assert len(expected) == 2
    assert {queue.queue_id for queue in follow(viewer, page.format(mine.pk), "queues")} == expected


@pytest.mark.parametrize("wanted", ["0", "987", "x", "9" * 30, "-1", "²"])
def test_no_server_has_no_queue(viewer: Client, wanted: str) -> None:
    server(queue_group(), "A")
    answer = viewer.get(QUEUES, {"server": wanted})
    assert answer.status_code == 200
    assert list(answer.context["cl"].result_list) == []


@pytest.mark.parametrize("page", [QUEUE_GROUPS, QUEUE_GROUPS + "{}/change/"])
def test_a_queue_group_leads_to_its_servers_and_queues(viewer: Client, page: str) -> None:
    orders = queue_group(ODD, 2)
    mine = server(orders, "A")
    server(queue_group("mails", 1), "M")
    administration.add_queues(ODD, ["mars"], labels={"zone": "mars"})
    at = page.format(orders.pk)
    assert follow(viewer, at, "servers") == [mine]
    assert [queue.queue_id for queue in follow(viewer, at, "queues")] == ["q0", "q1", "mars"]
    assert [queue.queue_id for queue in follow(viewer, at, "unowned")] == ["mars"]
    if page != QUEUE_GROUPS:
        assert {move.queue_id for move in follow(viewer, at, "moves")} == {"q0", "q1"}


def test_the_page_of_a_queue_without_a_server_says_why_nobody_may_have_it(viewer: Client) -> None:
    first = server(queue_group(queues=1), "A", labels={"zone": "eu"})
    administration.add_queues("orders", ["mars"], labels={"zone": "mars"})
    mars, earth = (Queue.objects.get(queue_id=name) for name in ("mars", "q0"))
    assert "no living server has zone=mars" in text(viewer.get(f"{QUEUES}{mars.pk}/change/"))
    assert "Why unowned" not in text(viewer.get(f"{QUEUES}{earth.pk}/change/"))
    Server.objects.filter(pk=first.pk).update(busy_before=DbLater(-1))
    assert "no server is running" in text(viewer.get(f"{QUEUES}{earth.pk}/change/"))


def test_where_a_site_has_no_such_list_there_is_no_link() -> None:
    assert columns.link_to_list(AdminSite("bare"), Move, "<moves>") == "<moves>"
    assert columns.link_to_page(site, Server, 7, "<A>") == f'<a href="{SERVERS}7/change/">&lt;A&gt;</a>'
