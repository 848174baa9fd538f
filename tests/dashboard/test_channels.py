"""The panel of channels on the dashboard."""

import pytest
from django.test import Client
from django.urls import reverse

from resourcepool.locks.channels.models import Channel as ChannelRow, Message as MessageRow
from resourcepool.models import Subscription
from tests.dashboard.test_streams import seen_by, shown

pytestmark = pytest.mark.django_db


@pytest.fixture
def _lagging() -> None:
    row = ChannelRow.objects.create(name="con <b>", last=2)
    MessageRow.objects.create(channel=row, number=2, payload='"s3cret"')
    Subscription.objects.create(channel=row, name="indexer", cursor=0)


@pytest.mark.usefixtures("_lagging")
def test_each_channel_has_a_line_with_who_lags_behind(admin_client: Client) -> None:
    page = shown(admin_client)
    assert "con &lt;b&gt;" in page
    assert "messages removed before indexer read them: 1" in page
    address = reverse("admin:resourcepool_subscription_changelist")
    assert (
        f'href="{address}?channel=con+%3Cb%3E&amp;status=durable"' in page
    )  # of the figure, and of the problem
    assert "s3cret" not in page


@pytest.mark.usefixtures("_lagging")
def test_who_may_see_only_channels_reads_no_name_of_a_subscription(client: Client) -> None:
    page = seen_by(client, "view_channel")
    assert "con &lt;b&gt;" in page
    assert "indexer" not in page
