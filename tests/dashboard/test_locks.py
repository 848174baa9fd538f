"""The panel of locks on the dashboard."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

import resourcepool
from resourcepool.dashboard.panels import MAX_CONDITIONS_SHOWN
from resourcepool.history.writer import Entry, write
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import Stream
from resourcepool.signals import EventKind, RowEvent
from tests.dashboard.test_streams import seen_by, shown
from tests.status.locks.conftest import A, B, crowd, lock, permits, stands, waits

__all__ = ["crowd"]

TEMPLATES = Path(resourcepool.__file__).parent / "templates/resourcepool/dashboard"

pytestmark = pytest.mark.django_db


def test_there_is_no_panel_without_locks(admin_client: Client) -> None:
    assert "rp-locks" not in shown(admin_client)


@pytest.mark.usefixtures("crowd")
def test_what_is_waited_for_has_a_line_that_leads_to_its_page(admin_client: Client) -> None:
    page = shown(admin_client)
    assert f'href="{reverse("admin:resourcepool_lock_change", args=["busy"])}"' in page
    assert f'href="{reverse("admin:resourcepool_semaphorepermit_change", args=["busy_230"])}"' in page
    assert "lock idle" not in page
    assert "holders, 3 waiting, the first for" in page
    assert "deadlock" not in page


@pytest.mark.usefixtures("crowd")
def test_it_says_since_when_a_lock_is_held_and_who_held_it_before(admin_client: Client, settings: Any) -> None:
    settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HISTORY": True}
    write([Entry(RowEvent(EventKind.RELEASED, LockRow, "default", "busy", 5, B))])
    write([Entry(RowEvent(EventKind.ACQUIRED, LockRow, "default", "busy", 7, A))])
    assert re.search("for [01] s; before: web-1/4711/worker-2, released [01] s ago", shown(admin_client))


def test_a_deadlock_is_named_and_is_a_problem(admin_client: Client) -> None:
    lock("orders <b>", A)
    lock("stock", B)
    waits("lock", "stock", A, waited=100)
    waits("lock", "orders <b>", B, waited=100)
    page = shown(admin_client)
    assert "holds lock orders &lt;b&gt; and waits for lock stock" in page
    assert "wait cycle for" in page
    assert page.count('class="rp-server-dead"') == 2
    assert re.search(r'/lock/[^"]+/change/">locks: ', page)


@pytest.mark.usefixtures("crowd")
@pytest.mark.parametrize(
    ("permission", "seen", "unseen"),
    [
        ("view_lock", "lock busy", "semaphore busy"),
        ("view_semaphorepermit", "semaphore busy", ">lock busy"),
        ("view_proxy", "", "busy"),
    ],
)
def test_who_may_see_one_kind_sees_no_other(client: Client, permission: str, seen: str, unseen: str) -> None:
    page = seen_by(client, permission)
    assert seen in page
    assert unseen not in page


@pytest.mark.parametrize("name", ["a_2Fb", "x/y", "50%"])
def test_a_line_leads_to_its_page_whatever_it_is_called(admin_client: Client, name: str) -> None:
    lock(name, A)
    waits("lock", name, B)
    Stream.objects.create(name=name)
    addresses = re.findall(r'href="([^"]*/(?:lock|stream)/[^"]*change/)"', shown(admin_client))
    assert len(addresses) == 2
    for address in addresses:
        assert f"<h2>{name}</h2>" in admin_client.get(address).content.decode()


def test_a_problem_leads_to_what_it_is_about(admin_client: Client) -> None:
    permits("semaphore", "licence & co", [A])
    waits("semaphore", "licence & co", B, waited=7_200)
    there = reverse("admin:resourcepool_semaphorepermit_change", args=[quote("licence & co#0")])
    assert f'href="{there}">locks: semaphore licence &amp; co</a>' in shown(admin_client)
    assert "licence &amp; co" in admin_client.get(there).content.decode()


@pytest.mark.usefixtures("crowd")
def test_conditions_and_barriers_have_a_panel_for_those_who_may_see_them(
    client: Client, admin_client: Client
) -> None:
    stands("import done", A)
    waits("barrier", "import done", B)
    page = shown(admin_client)
    panel = page[page.index('id="rp-conditions"') :]
    assert panel.index("barrier import done") < panel.index(">blocking<") < panel.index("condition orders")
    for model, name in (("barrier", "import done"), ("conditionwaiter", "orders")):
        there = reverse(f"admin:resourcepool_{model}_change", args=[name])
        assert f'href="{there}"' in panel
        assert "worker-" in admin_client.get(there).content.decode()
    assert "rp-conditions" not in seen_by(client, "view_lock")


def test_of_many_barriers_the_panel_shows_the_first_and_leads_to_the_list_of_all(admin_client: Client) -> None:
    for number in range(MAX_CONDITIONS_SHOWN + 1):
        stands(f"gate {number:02}", A)
    page = shown(admin_client)
    assert "barrier gate 19" in page
    assert "barrier gate 20" not in page
    assert f'id="rp-conditions-every-1" href="{reverse("admin:resourcepool_barrier_changelist")}"' in page


def test_on_a_telephone_each_figure_has_the_heading_of_its_column() -> None:
    for path in sorted(TEMPLATES.glob("*.html")):
        text = path.read_text()
        if text.count('scope="row"') == 1 and 'class="rp-servers' in text and path.stem != "queues":
            headings = re.findall(r'<th scope="col">(.*?)</th>', text)[1:]
            assert re.findall(r'<td data-label="({%.*?%})">', text) == headings, path.name
