"""The pages in Chinese for a browser that asks for it, and only for that one."""

import re
from typing import Any

import pytest
from django.test import Client

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.events import sentence_for
from resourcepool.models import Event, Job, Proxy
from resourcepool.resources.state import Status
from resourcepool.signals import EventKind
from tests.admin.conftest import event, lease, sign_in

CHINESE = {"HTTP_ACCEPT_LANGUAGE": "zh-CN,zh;q=0.9,en;q=0.5"}

LIST = "/admin/resourcepool/proxy/"
PAGES = {
    "/admin/": "资源池",
    LIST: "持有者",
    "/admin/resourcepool/proxy/import/": "显示计划",
    "/admin/resourcepool/event/": "操作员",
    "/admin/resourcepool/ticket/": "排队号",
    "/admin/resourcepool/sample/": "采样",
    "/admin/resourcepool/job/": "作业",
    "/admin/resourcepool/dashboard/": "仪表盘",
    "/admin/resourcepool/dashboard/live/": "使用率",
}


@pytest.fixture
def client(committed: None) -> Client:
    return sign_in("superuser")


@pytest.fixture
def held(committed: None) -> Proxy:
    proxy = Proxy.objects.create(host="a.example", port=80)
    lease(proxy, "web1/41/main/ab.1")
    event(proxy, ago=600, host="web1", pid=41)
    return proxy


def said(client: Client, url: str, **headers: str) -> str:
    answer = client.get(url, **headers)
    assert answer.status_code == 200
    body: str = answer.content.decode()
    return re.sub(r"<(script|style).*?</\1>", "", body, flags=re.DOTALL)


@pytest.mark.parametrize("url", PAGES)
def test_a_page_speaks_the_language_of_the_browser(client: Client, held: Proxy, url: str) -> None:
    assert PAGES[url] in said(client, url, **CHINESE)
    assert not re.search("[一-鿿]", said(client, url))


def test_the_page_of_a_resource_is_in_chinese(client: Client, held: Proxy) -> None:
    page = said(client, f"{LIST}{held.pk}/change/", **CHINESE)
    for sentence in (
        "<dt>持有者</dt><dd>web1/41/main/ab.1</dd>",
        "<dt>进程</dt><dd>web1 pid 41</dd>",
        "10 分钟前",
        "<dt>上次检查</dt><dd>无</dd>",
        "收回",
    ):
        assert sentence in page


@pytest.mark.parametrize("name", ["revoke", "quarantine", "return_to_service", "drain", "reserve", "check"])
def test_what_is_asked_first_is_in_chinese(client: Client, held: Proxy, name: str) -> None:
    page = said(client, f"{LIST}{held.pk}/operate/{name}/", **CHINESE)
    assert "已选择 1 个，其中 1 个正被持有。" in page
    assert ("原因" in page) is (name != "check")  # check has no reason


def test_what_came_of_it_is_said_in_chinese_and_written_down_as_it_was_entered(
    client: Client, held: Proxy
) -> None:
    entered = {"reason": "卡住了", "confirmed": "yes", "grant": f"{held.pk}:{held.fence}"}
    answer = client.post(f"{LIST}{held.pk}/operate/revoke/", entered, follow=True, **CHINESE)
    assert f"已收回租约：代理 {held}。" in answer.content.decode()


def test_what_the_program_wrote_is_translated_and_what_people_wrote_is_not(client: Client, held: Proxy) -> None:
    event(held, EventKind.EXPIRED, reason=sentence_for("found_late", seconds=12))
    event(held, EventKind.REVOKED, reason="hangs since 3 am")
    for url in (f"{LIST}{held.pk}/change/", "/admin/resourcepool/event/"):
        page = said(client, url, **CHINESE)
        assert "在过期 12 秒后被发现" in page
        assert "hangs since 3 am" in page
        assert "noticed 12 s after it expired" in said(client, url)
    assert Event.objects.filter(reason__code="found_late").exists()


def test_the_result_of_a_job_is_translated(client: Client) -> None:
    Job.objects.create(name="prune history", done_at=DbNow(), result=sentence_for("removed", count=7))
    assert "移除 7 条" in said(client, "/admin/resourcepool/job/", **CHINESE)
    assert "7 removed" in said(client, "/admin/resourcepool/job/")


def test_the_dashboard_says_in_chinese_what_is_wrong(client: Client) -> None:
    parked = {
        "status": Status.QUARANTINED,
        "reason": sentence_for("check", why=sentence_for("no_answer_in_time")),
        "until": DbLater(600),
    }
    Proxy.objects.create(host="b.example", port=80, busy_before=DbLater(600), **parked)
    Job.objects.create(name="statistics", failed_at=DbNow(), result="DatabaseUnavailable: database 'x': gone")
    page = said(client, "/admin/resourcepool/dashboard/", **CHINESE)
    assert "清扫从未完成过" in page
    assert "检查：未能及时应答" in page
    assert "作业“统计”" in page


def test_errors_of_forms_and_files_are_in_chinese(client: Client, held: Proxy, tmp_path: Any) -> None:
    missing = client.post(
        f"{LIST}{held.pk}/operate/quarantine/", {"reason": "x", "confirmed": "yes"}, **CHINESE
    )
    assert "必填" in missing.content.decode()
    file = tmp_path / "p.csv"
    file.write_text("host,port\na.example,\n")
    with file.open("rb") as upload:
        refused = client.post(f"{LIST}import/", {"file": upload}, **CHINESE)
    assert "第 2 行：port：缺失" in refused.content.decode()
