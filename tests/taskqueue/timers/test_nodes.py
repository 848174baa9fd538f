"""Which nodes may handle a topic, and how fast late timers are caught up."""

import itertools
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from resourcepool.exceptions import BadOption
from resourcepool.models import Topic
from resourcepool.taskqueue.timers import TimerRunner
from resourcepool.taskqueue.timers.models import is_enough
from resourcepool.taskqueue.timers.runner import TokenBucket


@pytest.mark.parametrize(
    ("asked", "labels", "version", "may"),
    [
        ({}, {}, "", True),
        ({}, {"zone": "eu"}, "1", True),
        ({"requires": {"zone": "eu"}}, {"zone": "eu", "disk": "ssd"}, "", True),
        ({"requires": {"zone": "eu"}}, {"zone": "us"}, "", False),
        ({"requires": {"zone": "eu"}}, {}, "", False),
        ({}, {"canary": "yes"}, "", False),
        ({"on_canary": True}, {"canary": "yes"}, "", True),
        ({"on_canary": True, "requires": {"zone": "eu"}}, {"canary": "yes"}, "", False),
        ({"least_version": "2.10"}, {}, "2.9", False),
        ({"least_version": "2.10"}, {}, "2.10", True),
        ({"least_version": "2.10"}, {}, "3", True),
        ({"least_version": "2.10"}, {}, "", False),
    ],
)
def test_a_topic_says_which_nodes_may_handle_it(asked: Any, labels: Any, version: str, may: bool) -> None:
    assert (Topic(name="t", **asked).refusal(labels, version) == "") is may


def test_versions_are_compared_by_their_numbers() -> None:
    ascending = ["1", "1.9.9", "2.9", "2.10rc1", "2.10rc2", "2.10", "2.10.1", "2.11", "10"]
    for before, after in itertools.pairwise(ascending):
        assert is_enough(after, before)
        assert not is_enough(before, after)
    for one, other in itertools.product(("2.10", "2.10.0", "v2.10", "V2.10"), repeat=2):
        assert is_enough(one, other)


@pytest.mark.parametrize(("version", "least"), [("build-7", "1"), ("2", "build-7"), ("", "1")])
def test_a_version_that_cannot_be_read_is_not_enough(version: str, least: str) -> None:
    assert not is_enough(version, least)


def test_one_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(ValidationError):
        Topic(name="a", least_version="build-7").full_clean()
    with pytest.raises(BadOption, match="is not allowed: A version must be like"):
        TimerRunner(version="build-7")
    assert TimerRunner(version="v2.10").version == "v2.10"


def test_late_ones_come_at_a_rate() -> None:
    rate = TokenBucket(10)
    assert rate.left(100.0) == 10
    rate.take(10)
    assert rate.left(100.0) == 0
    assert rate.left(100.5) == 5
    assert rate.left(200.0) == 10


def test_each_retry_waits_twice_as_long_and_an_hour_at_most() -> None:
    assert [Topic().delay(failures) for failures in (1, 2, 3, 10, 1_000)] == [10, 20, 40, 3_600, 3_600]
    assert Topic(retry_delay=7_200).delay(1) == 7_200
    assert Topic(retry_delay=0).delay(5) == 0
