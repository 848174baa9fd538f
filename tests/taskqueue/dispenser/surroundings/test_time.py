"""The moments of a dispenser are the database's, whatever time zone the project and the server are in."""

import datetime
from typing import Any

import pytest
from django.utils import timezone

from resourcepool.exceptions import BadOption
from resourcepool.taskqueue.dispenser.rebuild import Rebuilt
from tests.eventually import eventually
from tests.taskqueue.dispenser.dispensers import dispenser, keys, letters, waiting

HOUR = datetime.timedelta(hours=1)

in_every_zone = [
    pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "America/New_York"]),
    pytest.mark.parametrize("use_tz", [True, False]),
]


@pytest.fixture
def _zone(use_tz: bool, zone: str, settings: Any) -> None:
    settings.USE_TZ, settings.TIME_ZONE = use_tz, zone


@pytest.mark.usefixtures("_zone")
class TestInEveryTimeZone:
    pytestmark = in_every_zone

    def test_the_dispensers_clock_is_that_of_the_project(self) -> None:
        assert abs(dispenser().now() - timezone.now()) < HOUR / 4

    def test_what_is_done_after_a_mapping_was_begun_does_not_return(self) -> None:
        d = dispenser(letters("ab"))
        for began in (timezone.now() - datetime.timedelta(minutes=1), d.now()):
            d.tasks_done("alice", d.assign_tasks(1, "alice"))
            assert d.recreate_task_pool(letters("ab"), as_of=began).ignored
        assert d.recreate_task_pool(letters("ab"), as_of=d.now() - HOUR) == Rebuilt(is_outdated=True)

    def test_what_was_done_before_a_mapping_was_begun_is_new_work(self) -> None:
        d = dispenser(letters("ab"))
        d.tasks_done("alice", d.assign_tasks(1, "alice"))
        at_the_end = d.now()
        assert eventually(lambda: d.now() > at_the_end)  # SQLite's clock goes by milliseconds
        assert d.recreate_task_pool(letters("ab"), as_of=d.now()) == Rebuilt(added=1, kept=1)
        assert d.recreate_task_pool({"b": 1.0}, as_of=d.now()) == Rebuilt(kept=1, retired=1)
        assert keys(d.assign_tasks(2, "bob")) == "b"

    def test_a_moment_in_the_future_or_too_long_ago_is_refused(self) -> None:
        d = dispenser(letters("a"))
        for as_of, why in ((d.now() + HOUR / 60, "future"), (d.now() - 24.1 * HOUR, "kept no longer")):
            with pytest.raises(BadOption, match=why):
                d.recreate_task_pool({}, as_of=as_of)
        assert waiting() == "a"
