"""The panel of elections, and the latest activity, on the dashboard."""

from typing import Any

from django.contrib.auth.models import User

from resourcepool.db.dialect import DbLater
from resourcepool.elections.models import Election as ElectionRow
from resourcepool.models import Event
from tests.app.rows import granted, new
from tests.dashboard.test_views import client_with, text_of


def test_each_election_has_a_line_with_its_leader() -> None:
    granted(new(ElectionRow, name="reports"), "web-1 <b>")
    text = text_of(client_with("view_election"))
    panel = text[text.index('aria-labelledby="rp-elections"') :].split("</section>")[0]
    assert "web-1 &lt;b&gt;" in panel
    assert 'href="/admin/resourcepool/election/reports/change/"' in panel


def happened(what: str, pool: str = "resourcepool.proxy", **columns: Any) -> None:
    Event.objects.create(at=DbLater(-5), what=what, pool=pool, row="17", **columns)


def test_the_latest_activity_is_what_operators_did_and_what_went_wrong() -> None:
    happened("revoked", actor="maria", holder="crawler-7", reason="hangs")
    happened("acquired", holder="crawler-9")
    text = text_of(client_with("view_proxy", "view_event"))
    assert "maria revoked proxy 17 from crawler-7: hangs" in text
    assert "crawler-9" not in text


def test_activity_of_what_the_user_may_not_view_is_left_out() -> None:
    happened("dead", "resourcepool.task", reason="secret error")
    happened("revoked", "testapp.device", holder="secret-holder")
    assert "secret" not in text_of(client_with("view_proxy", "view_event"))
    User.objects.all().delete()
    happened("revoked", actor="maria")
    assert "rp-events" not in text_of(client_with("view_proxy"))
