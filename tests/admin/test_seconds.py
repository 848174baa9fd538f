"""Fields for seconds on admin pages, in both languages."""

import pytest
from django.test import Client

from resourcepool.locks.channels.models import Channel as ChannelRow
from resourcepool.models import Stream
from tests.admin.conftest import form_at, may_only

pytestmark = pytest.mark.django_db
PAGE = "/admin/resourcepool/channel/config/change/"


def text(client: Client, address: str, language: str = "en") -> str:
    answer = client.get(address, headers={"Accept-Language": language})
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.parametrize(
    ("seconds", "language", "label", "value"),
    [
        (604_800, "en", "Messages kept:", "7 d"),
        (9_000, "en", "Messages kept:", "150 min"),
        (90, "en", "Messages kept:", "90 s"),
        (2.5, "en", "Messages kept:", "2.5 s"),
        (86_400, "zh-hans", "消息保留时间:", "1 天"),
    ],
)
def test_viewers_see_a_formatted_duration(
    client: Client, seconds: float, language: str, label: str, value: str
) -> None:
    ChannelRow.objects.create(name="config", kept=seconds)
    may_only(client, "view_channel")
    shown = text(client, PAGE, language)
    assert f"<label>{label}</label>" in shown
    assert f'<div class="readonly">{value}</div>' in shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(604_800, "7d"), (9_000, "150m"), (90, "90s"), (2.5, "2.5s"), (0, "0s"), (7_200, "2h")],
)
def test_editors_see_and_enter_a_duration(admin_client: Client, seconds: float, shown: str) -> None:
    ChannelRow.objects.create(name="config", kept=seconds)
    page = text(admin_client, PAGE)
    assert f'name="kept" value="{shown}"' in page
    assert "Messages kept:" in page
    assert 'name="done_kept" value="7d"' in text(admin_client, "/admin/resourcepool/stream/add/")


@pytest.mark.parametrize(("entered", "seconds"), [("12h", 43_200), ("90", 90), ("1.5m", 90), ("2 d", 172_800)])
def test_a_duration_is_stored_in_seconds(admin_client: Client, entered: str, seconds: float) -> None:
    row = ChannelRow.objects.create(name="config")
    assert admin_client.post(PAGE, {"kept": entered, "kept_count": row.kept_count}).status_code == 302
    row.refresh_from_db()
    assert row.kept == seconds


@pytest.mark.parametrize("entered", ["soon", "7 weeks", "-1d", "1e999", ""])
def test_what_is_no_duration_is_refused(admin_client: Client, entered: str) -> None:
    row = ChannelRow.objects.create(name="config")
    assert (
        "errorlist" in admin_client.post(PAGE, {"kept": entered, "kept_count": row.kept_count}).content.decode()
    )


def test_the_shown_value_is_saved_unchanged(admin_client: Client) -> None:
    stream = Stream.objects.create(name="oracle", done_kept=2.5)
    address = "/admin/resourcepool/stream/oracle/change/"
    assert admin_client.post(address, form_at(admin_client, address)).status_code == 302
    stream.refresh_from_db()
    assert (stream.done_kept, stream.term_ttl) == (2.5, 15.0)
