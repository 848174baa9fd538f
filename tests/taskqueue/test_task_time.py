"""A task has its place in the order by the moment that the caller means, whatever zone the project's moments are of."""

import datetime
from typing import Any

import pytest
from django.utils import timezone

from resourcepool.taskqueue import NewTask, submit, submit_many
from tests.taskqueue.consumers import states, stream
from tests.taskqueue.test_commands import said

HOUR = datetime.timedelta(hours=1)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "America/New_York"])
@pytest.mark.parametrize("use_tz", [True, False])
def test_an_hour_ago_is_before_now_and_in_an_hour_after_it(use_tz: bool, zone: str, settings: Any) -> None:
    settings.USE_TZ, settings.TIME_ZONE = use_tz, zone
    stream()
    now = timezone.now()
    submit("oracle", "note", key="now")
    submit("oracle", "note", key="in an hour", task_time=now + HOUR)
    submit("oracle", "note", key="an hour ago", task_time=now - HOUR)
    submit_many("oracle", [NewTask("note", key="two hours ago", task_time=now - 2 * HOUR)])
    said("resourcepool_submit", "oracle", "note", "--key=first", f"--task-time={(now - 3 * HOUR).isoformat()}")
    assert list(states()) == ["first", "two hours ago", "an hour ago", "now", "in an hour"]
