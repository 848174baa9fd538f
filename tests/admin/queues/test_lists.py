"""The lists of servers, queues and moves."""

from typing import Any

import pytest
from django.test import Client
from django.utils.translation import override

from resourcepool.admin import filters
from resourcepool.admin.operations_mixin import refusal_text
from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.exceptions import BadOption, NotMigrated
from resourcepool.models import Move, Queue, Server
from resourcepool.queues import queries
from tests.admin.conftest import text
from tests.admin.queues.scene import LIST, queue_group, server

pytestmark = pytest.mark.django_db

QUEUES, SERVERS, MOVES, QUEUE_GROUPS = (LIST.format(kind) for kind in ("queue", "server", "move", "queuegroup"))


def found(client: Client, address: str) -> list[Any]:
    answer = client.get(address)
    assert answer.status_code == 200
    return list(answer.context["cl"].result_list)


@pytest.fixture
def scene(db: None) -> None:
    """``orders``: A has q0 and q2, a dead server q1, B has requested q2, q3 is unowned; ``mails`` has one queue."""
    orders = queue_group()
    first, dead, second = (server(orders, name) for name in ("A", "dead", "B"))
    Server.objects.filter(pk=dead.pk).update(busy_before=DbLater(-5))
    rows = Queue.objects.filter(queue_group=orders)
    rows.update(cur_server=first, req_server=None, requested_at=None)
    rows.filter(queue_id="q1").update(cur_server=dead)
    rows.filter(queue_id="q2").update(req_server=second, requested_at=DbLater(-30))
    rows.filter(queue_id="q3").update(cur_server=None, pin="nobody")
    queue_group("mails", 1)


FOUND = [
    ("?queue_group=orders", ["q0", "q1", "q2", "q3"]),
    ("?queue_group=mails", ["q0"]),
    ("?queue_group=none", []),
    ("?queue_group=%00", []),
    ("?status=unowned", ["q1", "q3", "q0"]),
    ("?status=unowned&queue_group=orders", ["q1", "q3"]),
    ("?status=asked", ["q2"]),
    ("?status=pinned", ["q3"]),
    ("?status=retiring", []),
    ("?status=nonsense&queue_group=mails", ["q0"]),
    ("?q=q2", ["q2"]),
    ("?q=dea", ["q1"]),
    ("?q=nobody", ["q3"]),
    ("?q=%00", []),
]


@pytest.mark.parametrize(("query", "expected"), FOUND)
def test_what_the_filters_find(viewer: Client, scene: None, query: str, expected: list[str]) -> None:
    assert [row.queue_id for row in found(viewer, QUEUES + query)] == expected


def test_a_queue_says_who_has_it_and_who_has_asked(viewer: Client, scene: None) -> None:
    page = text(viewer.get(QUEUES))
    names = {row.name: str(row) for row in Server.objects.all()}
    assert page.count(names["A"]) == 2
    assert "presumed dead" in page
    assert f'{names["B"]}</a><span class="resourcepool-small"><small>for 30 s' in page
    assert page.count('<td class="field-owner">none</td>') == 2
    assert page.count("nobody") == 1  # the pin


def test_an_owner_whose_row_is_gone_is_no_error(viewer: Client) -> None:
    queue_group(queues=1)
    Queue.objects.update(cur_server=987, req_server=988, requested_at=DbNow(), fence=3)
    assert "#987" in text(viewer.get(QUEUES))
    assert "#987" in text(viewer.get(f"{QUEUES}{Queue.objects.get().pk}/change/"))


def test_a_server_says_how_it_is(viewer: Client, scene: None) -> None:
    Server.objects.filter(name="B").update(
        busy_before=DbLater(50), labels={"zone": "eu"}, registered_at=DbLater(-7_200), state="draining", limit=9
    )
    page = text(viewer.get(SERVERS))
    assert "presumed dead in 4" in page or "presumed dead in 50" in page
    for said in ("presumed dead", "1 requested", "zone=eu", "2 h ago", "draining", "B/41/main"):
        assert said in page
    counts = {row.name: (row.status.queues, row.status.awaits) for row in found(viewer, SERVERS)}
    assert counts == {"A": (2, 0), "dead": (1, 0), "B": (0, 1)}
    one = text(viewer.get(f"{SERVERS}{Server.objects.get(name='B').pk}/change/"))
    assert "zone=eu" in one
    assert "2 h ago" in one


def test_moves_are_told_newest_first_with_their_reasons(viewer: Client, scene: None) -> None:
    page = text(viewer.get(f"{MOVES}?queue_group=orders"))
    assert page.index("rebalanced") < page.index("it had no owner")
    assert {row.what for row in found(viewer, f"{MOVES}?what=requested")} == {"requested"}
    assert {row.queue_id for row in found(viewer, f"{MOVES}?q=q1")} == {"q1"}
    assert found(viewer, f"{MOVES}?queue_group=mails") == []


def test_filters_look_at_the_newest_moves(viewer: Client, scene: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "NEWEST", 2)
    assert len(found(viewer, MOVES)) == 2


def add(client: Client, **entered: Any) -> Any:
    form = {"queue_group": "orders", "queues": "a\nb\n", "parameter": "", "labels": "", **entered}
    return client.post(f"{QUEUES}add/", form, follow=True)


def test_queues_are_added_one_a_line_and_shared_at_once(administrator: Client) -> None:
    orders = queue_group(queues=0)
    server(orders, "A")
    answer = add(administrator, queues="x1\r\n\r\n x2 \r\n", parameter="p", labels='{"zone": "eu"}')
    assert "2 queues were added." in text(answer)
    rows = Queue.objects.order_by("pk").values_list("queue_id", "parameter", "labels", "cur_server")
    assert list(rows) == [("x1", "p", {"zone": "eu"}, None), ("x2", "p", {"zone": "eu"}, None)]
    add(administrator)
    assert Queue.objects.filter(cur_server__name="A").count() == 2


def test_a_range_is_written_out_as_the_command_does(administrator: Client) -> None:
    queue_group(queues=0)
    assert "5 queues were added." in text(add(administrator, queues="08..10\nx\neu-7..7"))
    assert list(Queue.objects.order_by("pk").values_list("queue_id", flat=True)) == [
        *("08", "09", "10", "x", "eu-7"),
    ]
    assert "0..63 are 64 queues" in text(administrator.get(f"{QUEUES}add/"))


def test_the_form_names_the_queue_group_that_is_asked_for_and_needs_no_labels(administrator: Client) -> None:
    queue_group("mails", 0)
    queue_group("orders", 0)
    page = text(administrator.get(f"{QUEUES}add/?queue_group=orders"))
    assert '<option value="orders" selected>' in page
    assert "null" not in page


WRONG = [
    ({"queues": "\n \n"}, "This field is required"),
    ({"queues": "a\na"}, "each queue once"),
    ({"queues": "9..3"}, "“9..3” is not allowed: it must be an ascending range"),
    ({"queues": "0..10000"}, "at most 10000 at once"),
    ({"queues": "q1"}, "“q1” is not allowed: already exists in orders"),
    ({"queues": "x" * 101}, "1 to 100 printable characters"),
    ({"queues": "\x1b[31m"}, "1 to 100 printable characters"),
    ({"labels": "[1]"}, "Labels must be a JSON object"),
    ({"labels": "{"}, "Enter a valid JSON"),
    ({"queue_group": "none"}, "Select a valid choice"),
    ({"parameter": "x" * 2_001}, "at most 2000 characters"),
]


@pytest.mark.parametrize(("entered", "said"), WRONG)
def test_what_cannot_be_added_is_refused_and_nothing_is_added(
    administrator: Client, entered: dict[str, str], said: str
) -> None:
    queue_group(queues=2)
    assert said in text(add(administrator, **entered))
    assert Queue.objects.count() == 2


def test_a_refusal_is_told_in_the_readers_language() -> None:
    with override("zh-hans"):
        refused = refusal_text(BadOption("queue", ["q0", "q1"], "already exists in orders"))
    assert "“q0, q1”" in refused
    assert "orders" in refused
    assert "allowed" not in refused
    assert refusal_text(NotMigrated("run `manage.py migrate`")) == "run `manage.py migrate`"


def test_more_queues_than_at_once_are_refused(administrator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "MAX_QUEUES_AT_ONCE", 1)
    queue_group(queues=0)
    assert "at most 1 at once" in text(add(administrator))


def test_nobody_edits_a_server_a_queue_or_a_move(scene: None) -> None:
    from tests.admin.conftest import sign_in

    client = sign_in("superuser")
    for model in (Server, Queue, Move):
        row = model.objects.first()
        before = model.objects.filter(pk=row.pk).values().get()
        address = LIST.format(model._meta.model_name)
        assert client.post(f"{address}{row.pk}/change/", {"name": "x", "queue_id": "x"}).status_code == 403
        assert model.objects.filter(pk=row.pk).values().get() == before


def test_a_server_whose_work_hangs_is_marked(viewer: Client, scene: None) -> None:
    marked = '<span class="resourcepool-state bad">hangs</span>'
    Server.objects.update(last_activity_at=DbNow())
    assert marked not in text(viewer.get(SERVERS))
    Server.objects.filter(name="A").update(last_activity_at=DbLater(-3_600))
    assert text(viewer.get(SERVERS)).count(marked) == 1
    assert marked in text(viewer.get(f"{SERVERS}{Server.objects.get(name='A').pk}/change/"))
