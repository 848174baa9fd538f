"""A database session that ends is no timer's failure."""

from typing import Any

import pytest

from resourcepool.contrib.celery_timers import tasks as handover
from resourcepool.models import Topic
from resourcepool.taskqueue import timers
from tests.taskqueue.sessions import end, session
from tests.taskqueue.timers.runners import due, handling, over, states, timer, topic

on_servers = pytest.mark.only("mysql", "postgresql")


def loses(attempts: int, ran: list[Any]) -> None:
    """Handle the topic "t" with a handler whose session ends in so many attempts."""

    @timers.on("t")
    def lose(one: Any) -> None:
        ran.append((one.attempt, one.previous_end))
        if one.attempt <= attempts:
            end(session())
        Topic.objects.exists()


@on_servers
def test_what_a_lost_session_broke_begins_again() -> None:
    topic(retries=0, retry_delay=0, max_crashes=3)
    ran: list[Any] = []
    loses(2, ran)
    due()
    with handling():
        over(1)
    assert ran == [(1, ""), (2, "expired"), (3, "expired")]
    assert (states(), timer().failures, timer().crashes) == ({"a": "done"}, 0, 2)


@on_servers
def test_so_it_is_in_another_process_that_handles_them() -> None:
    topic(retries=0, retry_delay=0)
    ran: list[Any] = []
    loses(1, ran)
    due()
    handover.handle(timer().pk, timer().fence)
    assert (states(), timer().failures, timer().crashes) == ({"a": "pending"}, 0, 1)
    handover.handle(timer().pk, timer().fence)
    assert (states(), ran) == ({"a": "done"}, [(1, ""), (2, "expired")])
