"""What the history tells of leases that programs got over REST."""

from django.contrib.auth.models import User

from resourcepool.models import Event, Proxy
from tests.app.rows import new
from tests.eventually import at_once
from tests.history.fixtures import history
from tests.history.recorded import told
from tests.rest.conftest import Caller

__all__ = ["history"]

BOT = "bot@127.0.0.1 (api)"


def test_who_quarantined_it_whatever_the_holder_calls_itself(crawler: Caller) -> None:
    row = new(Proxy)
    lease = crawler.got("pools/proxy/acquire", holder="ann")["lease"]
    crawler.got("leases/quarantine", 204, lease=lease, reason="banned")
    assert told(row) == ["quarantined"]
    event = Event.objects.get()
    assert (event.actor, event.holder) == (BOT, f"ann of user {User.objects.get().pk}")


def test_when_it_was_got_and_given_back(crawler: Caller) -> None:
    row = new(Proxy)
    lease = crawler.got("pools/proxy/acquire", holder="crawler-7")["lease"]
    assert told(row) == ["acquired"]
    crawler.got("leases/release", 204, lease=lease)
    crawler.post("leases/release", lease=lease)
    assert told(row) == ["acquired", "released"]
    assert Event.objects.get(what="released").holder.startswith("crawler-7 of user ")
    assert {*Event.objects.values_list("actor", flat=True)} == {BOT}


def test_that_it_went_from_one_answer_to_the_answer_of_the_repeated_request(crawler: Caller) -> None:
    row = new(Proxy)
    lease = [crawler.got("pools/proxy/acquire", request_id="r-1")["lease"] for _ in range(2)][-1]
    crawler.got("leases/release", 204, lease=lease)
    assert told(row) == ["handed_over", "released"]  # each with its beginning
    assert {*Event.objects.values_list("actor", flat=True)} == {BOT}


def test_released_by_many_at_once_it_is_released_once(root: Caller) -> None:
    row, boss = new(Proxy), User.objects.get()
    lease = root.got("pools/proxy/acquire")["lease"]
    answers = at_once(8, lambda _: Caller(boss).post("leases/release", lease=lease).status_code)
    assert sorted(answers) == [204, *[409] * 7]
    assert told(row) == ["released"]
