"""The dashboard's pages: permissions, number of queries, and empty or unreadable pools."""

import datetime
import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from resourcepool.dashboard import cards, views
from resourcepool.db.dialect import DbLater
from resourcepool.models import Event, Job, Proxy, Sample
from resourcepool.status import times
from resourcepool.templatetags.resourcepool_dashboard import code_spans
from tests.app.models import Device
from tests.app.rows import hold, new, several
from tests.waiting.threads import ticket

PAGE = "/admin/resourcepool/dashboard/"
LIVE = f"{PAGE}live/"
HOSTILE = "<script>alert(1)</script>"


def client_with(*permissions: str, **columns: Any) -> Client:
    """Return a client of a new user with these permissions."""
    user = User.objects.create_user("user", **{"is_staff": True, **columns})
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    assert user.user_permissions.count() == len(permissions)
    client = Client()
    client.force_login(user)
    return client


def text_of(client: Client, address: str = PAGE) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_the_activity_is_dated_unless_it_is_of_today_and_can_be_jumped_to() -> None:
    client = client_with(is_superuser=True)
    columns = {"what": "drained", "pool": "resourcepool.proxy", "row": "17", "actor": "alice"}
    Event.objects.create(at=DbLater(-1), **columns)
    Event.objects.create(at=DbLater(-2 * 86_400), **columns)
    text = text_of(client)
    before, today = re.findall(r"<time>(.*?)</time>", text)
    assert re.fullmatch(r"(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d", today)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", before)
    assert '<a id="rp-events-link" href="#rp-events">Activity</a>' in text


class TestAccess:
    def test_an_anonymous_user_is_sent_to_the_login(self) -> None:
        assert Client().get(PAGE)["Location"].startswith("/admin/login/")
        assert Client().get(LIVE).status_code == 403

    def test_a_user_who_is_not_staff_sees_nothing(self) -> None:
        client = client_with("view_proxy", is_staff=False)
        assert client.get(PAGE).status_code == 302
        assert client.get(LIVE).status_code == 403

    def test_a_user_without_permission_sees_nothing_and_no_link(self) -> None:
        client = client_with()
        assert client.get(PAGE).status_code == 403
        assert client.get(LIVE).status_code == 403
        assert PAGE not in text_of(client, "/admin/")

    @pytest.mark.parametrize("permission", ["view_proxy", "change_proxy"])
    def test_a_user_who_may_view_one_pool_sees_only_that_one(self, permission: str) -> None:
        new(Device, name="secret phone")
        client = client_with(permission)
        for address in (PAGE, LIVE):
            text = text_of(client, address)
            assert "resourcepool.Proxy" in text
            assert "testapp" not in text

    def test_the_operate_permission_alone_shows_nothing(self) -> None:
        assert client_with("operate_proxy").get(PAGE).status_code == 403
        User.objects.all().delete()
        assert "resourcepool.Proxy" in text_of(client_with("operate_proxy", "view_proxy"))

    @pytest.mark.parametrize("address", [PAGE, LIVE])
    def test_it_is_read_only(self, address: str) -> None:
        assert client_with("view_proxy").post(address).status_code == 405


def failed(name: str, result: str) -> None:
    Job.objects.create(name=name, failed_at=DbLater(-60), result=result)


BROKEN = "CheckerBroken: 9 of 10 failed at proxy.internal"


class TestAlarmsOfJobs:
    """Alarms are shown only to users who may view the pool."""

    @pytest.fixture(autouse=True)
    def _all_fail(self, settings: Any) -> None:
        checks = {"resourcepool.Proxy": {}, "testapp.Device": {}}
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "CHECKS": checks}
        failed("check resourcepool.Proxy", BROKEN)
        failed("check testapp.Device", "OperationalError: phone 7 of testapp.Device")
        failed("prune history", "DatabaseUnavailable: testapp.Device stayed locked")
        new(Proxy)

    @pytest.mark.parametrize(
        ("who", "is_told", "is_not_told"),
        [
            (
                ["view_proxy"],
                ["proxy.internal", "prune history", "see the application log"],
                ["testapp", "phone 7"],
            ),
            (
                ["view_device"],
                ["phone 7", "prune history", "see the application log"],
                ["resourcepool.Proxy", "proxy.internal"],
            ),
            (["view_proxy", "view_device", "view_ghost"], ["proxy.internal", "phone 7", "stayed locked"], []),
            (["operate_proxy", "view_job", "view_device"], ["phone 7"], ["proxy.internal"]),
        ],
    )
    def test_are_shown_to_users_who_may_view_the_pool(
        self, who: list[str], is_told: list[str], is_not_told: list[str]
    ) -> None:
        client = client_with(*who)
        for address in (PAGE, LIVE):
            text = text_of(client, address)
            assert [said for said in is_told if said not in text] == []
            assert [said for said in is_not_told if said in text] == []


class TestThePage:
    def test_costs_ten_queries_and_two_for_each_pool_at_most(self) -> None:
        several(Proxy, 3)
        several(Device, 2)
        client = client_with("view_proxy", "view_device")
        client.get(PAGE)
        with CaptureQueriesContext(connection) as queries:
            client.get(PAGE)
            asked = [query["sql"] for query in queries.captured_queries]
        assert len([sql for sql in asked if "SELECT 1" not in sql]) <= 14, "\n".join(asked)

    def test_is_as_of_the_clock_of_the_database(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now = datetime.datetime(2031, 5, 6, 7, 8, 9, tzinfo=datetime.UTC)
        monkeypatch.setattr(times, "read_clock", lambda _connection: now)
        assert text_of(client_with("view_proxy")).count("As of 07:08:09 +0000") == 2

    def test_shows_each_resource_with_its_holder_and_links_to_it(self) -> None:
        proxy = new(Proxy)
        hold(proxy, holder="web1/90/main/3")
        text = text_of(client_with("view_proxy"))
        assert f'href="/admin/resourcepool/proxy/{proxy.pk}/change/"' in text
        assert f'aria-label="{proxy.pk}: {proxy}, leased (web1/90/main/3)' in text

    def test_numbers_link_to_the_lists_that_they_count(self) -> None:
        hold(new(Proxy))
        new(Proxy, verdict="bad", checked_at=DbLater(-60))
        ticket(Proxy)
        text = text_of(client_with("view_proxy", "view_ticket"))
        for query in ("proxy/?state=leased", "proxy/?verdict=bad", "dashboard/waiting/?of=resourcepool.Proxy"):
            assert f'href="/admin/resourcepool/{query}"' in text

    def test_no_link_leads_to_a_forbidden_page(self) -> None:
        ticket(Proxy)
        text = text_of(client_with("view_proxy"))
        assert "/ticket/" not in text
        assert "/job/" not in text

    def test_alarms_link_to_their_subjects(self) -> None:
        new(Proxy)
        text = text_of(client_with("view_proxy", "view_job"))
        assert "The sweep has never finished" in text
        assert 'href="/admin/resourcepool/job/">Show</a>' in text

    def test_waiters_are_counted_when_there_are_no_alarms(self) -> None:
        new(Proxy)
        Job.objects.create(name="sweep", done_at=DbLater(-1))
        client = client_with("view_proxy")
        assert "No alarms." in text_of(client)
        ticket(Proxy)
        text = text_of(client)
        assert "1 waiting, no alarms." in text
        assert "No alarms." not in text

    def test_has_no_inline_script_and_no_inline_style(self) -> None:
        new(Proxy)
        Sample.objects.create(pool="resourcepool.proxy", minute=DbLater(-90), free=3)
        text = text_of(client_with("view_proxy"))
        assert "style=" not in text
        assert "<style" not in text
        assert all("src=" in script.split(">")[0] for script in text.split("<script")[1:])
        assert "onclick" not in text

    def test_an_empty_pool_shows_a_command_that_fills_it(self) -> None:
        assert "manage.py resourcepool_import proxies.csv" in text_of(client_with("view_proxy"))

    def test_a_pool_without_a_table_is_reported_and_the_others_are_shown(self) -> None:
        new(Proxy)
        text = text_of(client_with("view_proxy", "view_ghost"))
        assert "manage.py migrate" in text
        assert "rp-cell rp-free" in text

    def test_a_large_pool_has_no_squares(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(cards, "MAX_CELLS", 2)
        monkeypatch.setattr(cards, "MAX_IN_LINE", 2)
        several(Proxy, 3)
        text = text_of(client_with("view_proxy"))
        assert text.count("rp-cell rp-free") == 1  # in the legend

    def test_a_quiet_pool_takes_one_line_and_a_busy_one_is_open(self) -> None:
        new(Proxy)
        client = client_with("view_proxy")
        assert '<details id="rp0-more">' in text_of(client)
        ticket(Proxy)
        assert '<details id="rp0-more" open>' in text_of(client)

    def test_a_lease_that_was_not_renewed_in_time_is_amber(self) -> None:
        proxy = new(Proxy)
        lease = hold(proxy, holder="stuck", ttl=60)
        acquired = {"pool": "resourcepool.proxy", "row": str(proxy.pk), "fence": lease.fence}
        Event.objects.create(at=DbLater(-60), what="acquired", ttl=60, **acquired)
        client = client_with("view_proxy")
        assert "rp-overdue" not in text_of(client)
        Proxy.objects.update(busy_before=DbLater(20))
        text = text_of(client)
        assert 'class="rp-cell rp-overdue" id="rp0-0"' in text
        assert "overdue: not renewed in time" in text
        assert "<b>1</b> overdue" in text

    def test_offers_each_time_range_and_marks_the_current_one(self) -> None:
        text = text_of(client_with("view_proxy"), f"{PAGE}?span=24h")
        assert [f'href="?span={span}"' in text for span in ("15m", "1h", "24h")] == [True] * 3
        assert '<a href="?span=24h" aria-current="true">24 hours</a>' in text

    def test_formats_commands_as_code_and_escapes_hostile_text(self) -> None:
        assert code_spans(f"run `{HOSTILE}` {HOSTILE}").count("<") == 2
        assert "<code>manage.py resourcepool_sweep</code>" in text_of(client_with("view_proxy"))


class TestWithoutADatabase:
    @pytest.mark.parametrize("address", [PAGE, LIVE])
    def test_the_answer_is_one_sentence(self, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: Any, **__: Any) -> None:
            raise OperationalError(2006, "Server has gone away at 10.0.0.7")

        client = client_with("view_proxy")
        monkeypatch.setattr(views, "overview", fail)
        answer = client.get(address)
        assert answer.status_code == 503
        assert answer["Content-Type"] == "text/plain"
        assert answer.content.decode().startswith("The database is not responding correctly")
        assert "10.0.0.7" not in answer.content.decode()
