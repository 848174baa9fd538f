"""Fields for seconds on admin pages, in both languages."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from resourcepool.locks.channels.models import Channel as ChannelRow
from resourcepool.models import Stream

pytestmark = pytest.mark.django_db
PAGE = "/admin/resourcepool/channel/config/change/"


@pytest.fixture
def viewer(client: Client, django_user_model: Any) -> Client:
    user = django_user_model.objects.create_user("viewer", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_channel"))
    client.force_login(user)
    return client


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
    viewer: Client, seconds: float, language: str, label: str, value: str
) -> None:
    ChannelRow.objects.create(name="config", kept=seconds)
    shown = text(viewer, PAGE, language)
    assert f"<label>{label}</label>" in shown
    assert f'<div class="readonly">{value}</div>' in shown


@pytest.mark.parametrize(("language", "said"), [("en", "Now: 7 d."), ("zh-hans", "现在：7 天。")])
def test_editors_see_seconds_and_a_formatted_duration(admin_client: Client, language: str, said: str) -> None:
    ChannelRow.objects.create(name="config")
    shown = text(admin_client, PAGE, language)
    assert 'name="kept" value="604800"' in shown
    assert said in shown
    ChannelRow.objects.update(kept=2.5)
    assert 'name="kept" value="2.5"' in text(admin_client, PAGE)
    assert "Default: 7 d." in text(admin_client, "/admin/resourcepool/stream/add/")


def test_the_shown_value_is_saved_unchanged(admin_client: Client) -> None:
    stream = Stream.objects.create(name="oracle", done_kept=2.5)
    form = admin_client.get("/admin/resourcepool/stream/oracle/change/").context["adminform"].form
    entered = {name: form[name].value() for name in form.fields}
    answer = admin_client.post(
        "/admin/resourcepool/stream/oracle/change/",
        {name: value for name, value in entered.items() if value is not False},
    )
    assert answer.status_code == 302
    stream.refresh_from_db()
    assert (stream.done_kept, stream.term_ttl) == (2.5, 15.0)
