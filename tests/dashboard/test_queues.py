"""The dashboard's panel of queue groups: permissions, texts, and limits."""

from typing import Any

import pytest
from django.contrib.admin import site
from django.db import connection
from django.http import HttpRequest
from django.test.utils import CaptureQueriesContext

from resourcepool.dashboard import queues
from resourcepool.dashboard.links import Links
from resourcepool.dashboard.queues import describe, rows, smallest_that_fit, state_of
from resourcepool.db.dialect import DbLater
from resourcepool.exceptions import DatabaseUnavailable
from resourcepool.models import Proxy, Queue, Server
from resourcepool.queues import administration
from resourcepool.status.queues.queue_groups import ServerStatus
from resourcepool.status.queues.queues import QueueStatus
from tests.admin.queues.scene import queue_group, server
from tests.app.rows import new
from tests.dashboard.test_views import LIVE, PAGE, client_with, text_of
from tests.queues.statuses import group_status, server_status


class Nowhere(Links):
    """The links of a user without permissions."""

    def can_view(self, model: Any) -> bool:
        return False


NOWHERE = Nowhere(site, HttpRequest())
ALL = ("view_queuegroup", "view_server", "view_queue", "view_move")


def place(**more: Any) -> QueueStatus:
    server = {"owner": "A #1", "owner_pk": 1, "is_owned": True, "requester": "", "requester_pk": None}
    spans = {"asked_for": None, "since": 720.0, "is_retiring": False}
    about = {"pk": 7, "queue_id": "q", "parameter": "", "fence": 1, "pin": "", "labels": {}}
    return QueueStatus(**{**server, **spans, **about, **more})


SAID = [
    (place(), "leased", "q: owned by A #1, for 12 min"),
    (
        place(requester="B #2", asked_for=3.0),
        "draining",
        "q: owned by A #1, for 12 min, requested by B #2, for 3 s",
    ),
    (
        place(is_retiring=True, asked_for=3.0),
        "retired",
        "q: owned by A #1, for 12 min, to be removed, for 3 s",
    ),
    (place(owner="C #3", is_owned=False), "quarantined", "q: owned by C #3 (presumed dead), for 12 min"),
    (place(owner="", is_owned=False), "quarantined", "q: unowned"),
    (place(pin="B"), "leased", "q: owned by A #1, for 12 min, pinned to B"),
]


@pytest.mark.parametrize(("where", "css", "said"), SAID)
def test_a_square_says_where_its_queue_is(where: QueueStatus, css: str, said: str) -> None:
    assert describe(where) == (css, said, 7)


@pytest.mark.parametrize(
    ("one", "state", "word"),
    [
        (server_status(expires_in=58.0), "up", "up"),
        (server_status(expires_in=45.0), "late", "up, late"),
        (server_status(expires_in=58.0, state="draining"), "draining", "draining"),
        (server_status(expires_in=58.0, queues=1, last_activity=51.0), "dead", "hangs"),
        (None, "dead", ""),
    ],
)
def test_how_a_server_is(one: ServerStatus | None, state: str, word: str) -> None:
    css, badge = state_of(one, group_status())
    assert (css, str(getattr(badge, "label", ""))) == (state, word)


def test_what_nobody_has_comes_first_then_the_dead() -> None:
    one = group_status(
        server_status(1, queues=4, asked_for=1),
        server_status(2, expires_in=-5.0, queues=2),
        unowned=5,
        queues=9,
    )
    found = rows(one, None, NOWHERE, "x")
    assert [(row.server and row.server.pk, row.queues) for row in found] == [(None, 3), (2, 2), (1, 4)]
    assert [(row.owned, row.requested) for row in found] == [
        ("75.00", "0.00"),
        ("50.00", "0.00"),
        ("75.00", "25.00"),
    ]


def test_queues_of_a_server_that_is_gone_are_without_owner() -> None:
    found = rows(group_status(server_status(queues=1), unowned=1), [place(owner_pk=99), place()], NOWHERE, "x")
    assert [row.squares.count("rp-cell") for row in found] == [1, 1]
    assert "owned by" in found[1].squares


def test_squares_are_for_as_many_queue_groups_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "MAX_SQUARES", 10)
    groups = [group_status(pk=pk, queues=count) for pk, count in ((1, 9), (2, 3), (3, 7), (4, 0))]
    assert [group.pk for group in smallest_that_fit(groups)] == [4, 2, 3]


def test_servers_beyond_a_hundred_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "MAX_SERVER_ROWS", 2)
    orders = queue_group()
    for name in "ABC":
        server(orders, name)
    text = text_of(client_with(*ALL))
    assert "and 1 more servers" in text
    assert text.count('<th scope="row">') == 2


def test_queue_groups_beyond_twenty_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "MAX_CARDS", 1)
    queue_group("a")
    queue_group("b")
    text = text_of(client_with(*ALL))
    assert "and 1 more queue groups" in text
    assert text.count('aria-labelledby="rpq') == 1


class TestSomebody:
    def test_who_may_view_queue_groups_sees_them_and_no_pool(self) -> None:
        queue_group("secret")
        new(Proxy)
        client = client_with("view_queuegroup")
        for address in (PAGE, LIVE):
            text = text_of(client, address)
            assert "secret" in text
            assert "resourcepool.Proxy" not in text
        assert f'href="{PAGE}"' in text_of(client, "/admin/")

    def test_who_may_not_view_queue_groups_learns_nothing_of_them(self) -> None:
        orders = queue_group("secret")
        server(orders, "A")
        Server.objects.update(busy_before=DbLater(-600))
        client = client_with("view_proxy", "view_server", "view_queue", "view_move")
        with CaptureQueriesContext(connection) as asked:
            for address in (PAGE, LIVE):
                assert "secret" not in text_of(client, address)
        assert not [one for one in asked.captured_queries if "resourcepool_queue" in one["sql"]]

    def test_who_may_only_view_queues_sees_no_dashboard(self) -> None:
        assert client_with("view_queue", "view_server", "view_move").get(PAGE).status_code == 403

    def test_nothing_leads_where_one_may_not_go(self) -> None:
        orders = queue_group()
        server(orders, "A")
        text = text_of(client_with("view_queuegroup"))
        for kind in ("queue", "server", "move"):
            assert f"/admin/resourcepool/{kind}/" not in text
        assert f'href="/admin/resourcepool/queuegroup/{orders.pk}/change/"' in text
        assert "q0: owned by A" in text


class TestTheCard:
    def test_shows_each_server_with_its_queues(self) -> None:
        orders = queue_group(queues=3)
        first = server(orders, "A", labels={"zone": "eu"})
        second = server(orders, "B", weight=2)
        text = text_of(client_with(*ALL))
        for said in (str(first), str(second), "zone=eu", "+2 to come", "requested by B", "rebalanced"):
            assert said in text
        queue = Queue.objects.order_by("pk")[0]
        assert f'href="/admin/resourcepool/queue/{queue.pk}/change/"' in text
        assert text.count('class="rp-cell rp-leased" id="rpq') == 1
        assert text.count('class="rp-cell rp-draining" id="rpq') == 2

    def test_figures_lead_to_the_lists_of_what_they_count(self) -> None:
        orders = queue_group(queues=3)
        server(orders, "A")
        server(orders, "B")
        Queue.objects.filter(queue_id="q0").update(cur_server=None)
        text = text_of(client_with(*ALL))
        for query in (
            *("queue/?queue_group=orders", "queue/?queue_group=orders&amp;status=unowned"),
            *(
                "queue/?queue_group=orders&amp;status=asked",
                "server/?queue_group=orders",
                "move/?queue_group=orders",
            ),
        ):
            assert f'href="/admin/resourcepool/{query}"' in text

    def test_of_a_large_queue_group_shows_bars(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(queues, "MAX_SQUARES", 3)
        orders = queue_group(queues=4)
        server(orders, "A")
        text = text_of(client_with(*ALL))
        assert 'width="100.00"' in text
        assert "q0: " not in text

    def test_moves_that_are_alike_are_told_together(self) -> None:
        orders = queue_group(queues=5)
        server(orders, "A")
        server(queue_group("mails", 1), "B")
        text = text_of(client_with(*ALL))
        assert "<b>5 queues</b> assigned" in text
        assert "<b>queue q0</b> assigned" in text

    def test_says_what_to_do_next(self) -> None:
        queue_group("empty", 0)
        queue_group("alone", 1)
        text = text_of(client_with(*ALL))
        assert "manage.py resourcepool_queues add empty" in text
        assert "QueueServer(&quot;alone&quot;)" in text or 'QueueServer("alone")' in text

    def test_says_that_it_has_no_server_or_is_paused(self) -> None:
        queue_group()
        client = client_with(*ALL)
        assert '<strong class="rp-badge bad">no server</strong>' in text_of(client)
        administration.pause("orders", by="ann")
        text = text_of(client)
        assert '<strong class="rp-badge warn">paused</strong>' in text
        assert "by ann" in text

    def test_alarms_of_queues_lead_to_what_they_are_about(self) -> None:
        orders = queue_group()
        server(orders, "A")
        Server.objects.update(busy_before=DbLater(-600))
        text = text_of(client_with(*ALL))
        assert "queues: orders" in text
        assert 'status=unowned">queues: orders</a>' in text

    def test_costs_seven_queries_more_for_any_number_of_queue_groups(self) -> None:
        client = client_with(*ALL, "view_proxy")
        new(Proxy)

        def cost() -> int:
            text_of(client)
            with CaptureQueriesContext(connection) as asked:
                text_of(client)
            return len([one for one in asked.captured_queries if not one["sql"].startswith("SELECT 1")])

        without = cost()
        queue_group("a")
        assert cost() == without + 6  # of the seven, one was asked before
        for name in "bcd":
            server(queue_group(name, 20), "A")
        assert cost() == without + 6


def test_without_its_tables_the_rest_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Any:
        raise DatabaseUnavailable("the database of queues does not answer")

    monkeypatch.setattr(queues, "queue_groups", fail)
    new(Proxy)
    text = text_of(client_with(*ALL, "view_proxy"))
    assert "the database of queues does not answer" in text
    assert "resourcepool.Proxy" in text
