"""Channels, messages and subscriptions in the admin."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from resourcepool.db.dialect import DbLater
from resourcepool.locks.channels.models import Channel as ChannelRow, Message as MessageRow
from resourcepool.models import Subscription
from tests.admin.test_streams import page

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _channel() -> None:
    row = ChannelRow.objects.create(name="config", last=3)
    for number in (2, 3):
        MessageRow.objects.create(channel=row, number=number, payload='{"a": "<b>"}')
    Subscription.objects.create(channel=row, name="indexer", cursor=2)


def test_the_list_of_channels_says_who_lags_behind(admin_client: Client) -> None:
    shown = page(admin_client, "channel", "changelist")
    for text in (
        "indexer has no reader; unread messages: 1",
        'status=durable">1</a>',
        "indexer: 1 (",
    ):
        assert text in shown
    assert "<dt>Published per minute</dt><dd>2</dd>" in page(admin_client, "channel", "change", "config")


def test_its_settings_are_edited_and_what_is_published_meanwhile_stays(admin_client: Client) -> None:
    address = reverse("admin:resourcepool_channel_change", args=["config"])
    ChannelRow.objects.update(last=4)
    assert admin_client.post(address, {"kept": "60", "kept_count": "5"}).status_code == 302
    row = ChannelRow.objects.get()
    assert (row.kept, row.kept_count, row.last) == (60, 5, 4)


def test_nobody_adds_or_deletes_by_a_form(admin_client: Client) -> None:
    for model in ("channel", "message", "subscription"):
        assert admin_client.get(reverse(f"admin:resourcepool_{model}_add")).status_code == 403
    assert admin_client.get(reverse("admin:resourcepool_channel_delete", args=["config"])).status_code == 403


def test_only_what_would_change_something_is_offered(admin_client: Client) -> None:
    key = Subscription.objects.get().pk
    assert "/operate/prune/" in page(admin_client, "channel", "change", "config")
    assert "/operate/remove/" in page(admin_client, "subscription", "change", key)
    MessageRow.objects.all().delete()
    Subscription.objects.update(holder="web-1", busy_before=DbLater(60))
    assert "/operate/prune/" not in page(admin_client, "channel", "change", "config")
    assert "/operate/remove/" not in page(admin_client, "subscription", "change", key)
    assert "/operate/move/" in page(admin_client, "subscription", "change", key)


def test_a_subscription_without_a_name_is_called_so(admin_client: Client) -> None:
    Subscription.objects.create(channel_id="config", name="00c0ffee", is_durable=False)
    shown = page(admin_client, "subscription", "changelist")
    assert ">unnamed</a>" in shown
    assert ">indexer</a>" in shown


def test_what_is_removed_on_its_page_leads_to_the_list(admin_client: Client) -> None:
    names = {"subscription": "Subscription config/indexer", "channel": "Channel config"}
    for model, key in (("subscription", Subscription.objects.get().pk), ("channel", "config")):
        address = reverse(f"admin:resourcepool_{model}_operate", args=[key, "remove"])
        answer = admin_client.post(address, {"confirmed": "yes"}, follow=True)
        assert answer.redirect_chain == [(reverse(f"admin:resourcepool_{model}_changelist"), 302)]
        assert [str(one) for one in answer.context["messages"]] == [f"{names[model]} was removed."]


def test_it_takes_a_permission_of_its_own_and_payloads_another_one(
    client: Client, django_user_model: Any
) -> None:
    user = django_user_model.objects.create_user("viewer", is_staff=True)
    allowed = ["view_channel", "view_subscription"]
    user.user_permissions.set(Permission.objects.filter(codename__in=allowed))
    client.force_login(user)
    address = reverse("admin:resourcepool_subscription_operate", args=[Subscription.objects.get().pk, "move"])
    assert client.post(address, {"confirmed": "yes", "to": "now"}).status_code == 403
    assert client.get(reverse("admin:resourcepool_message_changelist")).status_code == 403
    assert Subscription.objects.get().cursor == 2


def test_messages_are_found_by_their_channel(admin_client: Client) -> None:
    shown = page(admin_client, "message", "changelist", channel="config")
    assert "2 messages" in shown
    assert "0 messages" in page(admin_client, "message", "changelist", channel="other")
    key = MessageRow.objects.first().pk
    assert "&lt;b&gt;" in page(admin_client, "message", "change", key)


def test_a_subscription_that_nobody_reads_is_marked_if_it_has_something_to_read(admin_client: Client) -> None:
    said = '<span class="resourcepool-state {}">no reader</span>'
    assert said.format("bad") in page(admin_client, "subscription", "changelist")
    Subscription.objects.update(cursor=3)
    assert said.format("warn") in page(admin_client, "subscription", "changelist")
