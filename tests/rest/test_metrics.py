"""The Prometheus metrics: the numbers of the dashboard that the caller may view."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from prometheus_client.parser import text_string_to_metric_families

from resourcepool import jobs
from resourcepool.locks import Channel, Lock
from resourcepool.models import Proxy, Stream
from resourcepool.queues import administration
from resourcepool.taskqueue import submit
from tests.app.rows import hold, several
from tests.rest.conftest import Caller

# On PostgreSQL a pool without a table would fail the transaction around a test.
pytestmark = pytest.mark.usefixtures("transactional_db")

Numbers = dict[tuple[str, str], float]


def told(caller: Caller) -> Numbers:
    """Return {(gauge, its labels): number}."""
    answer = caller.get("metrics")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name.removeprefix("resourcepool_"), " ".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


def test_the_numbers_are_those_of_the_dashboard(root: Caller) -> None:
    rows = several(Proxy, 3)
    hold(rows[0])
    Stream.objects.create(name='a "b"\\c')
    submit('a "b"\\c', "note")
    Channel("news").publish(1)
    administration.create("orders", ["1", "2"])
    with Lock("nightly"):
        numbers = told(root)
    assert numbers["pool_resources", "resourcepool.Proxy free"] == 2
    assert numbers["pool_resources", "resourcepool.Proxy leased"] == 1
    assert numbers["pool_waiters", "resourcepool.Proxy"] == 0
    assert numbers["pool_readable", "resourcepool.Proxy"] == 1
    assert numbers["stream_unfinished_tasks", 'a "b"\\c'] == 1
    assert numbers["stream_led", 'a "b"\\c'] == 0
    assert numbers["channel_last_number", "news"] == 1
    assert numbers["queue_group_unowned_queues", "orders"] == 2
    assert numbers["locks_holders", ""] == 1


def test_who_wants_plain_text_gets_it(root: Caller) -> None:
    answer = root.client.get("/api/metrics", headers={"accept": "text/plain"})
    assert (answer.status_code, answer["Content-Type"].split(";")[0]) == (200, "text/plain")


def test_no_label_is_one_that_prometheus_sets_itself(root: Caller) -> None:
    jobs.run("sweep", lambda term: "1 removed")
    text = root.get("metrics").content.decode()
    assert 'resourcepool_periodic_job_success_age_seconds{periodic_job="sweep"}' in text
    assert not re.search(r"[{,](job|instance)=", text)


def test_nothing_is_told_of_what_one_may_not_view(call: Callable[..., Caller]) -> None:
    several(Proxy, 1)
    Stream.objects.create(name="oracle")
    assert told(call()) == {}
    streams = {name for name, _labels in told(call("view_stream", name="other"))}
    assert streams
    assert all(name.startswith("stream_") for name in streams)


def test_of_what_has_no_number_none_is_told(root: Caller) -> None:
    Stream.objects.create(name="oracle")
    assert ("stream_oldest_task_seconds", "oracle") not in told(root)


def test_more_rows_take_no_more_statements(root: Caller) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as sent:
            told(root)
        return len(sent)

    Stream.objects.create(name="first")
    several(Proxy, 1)
    few = statements()
    several(Proxy, 20)
    for number in range(20):
        Stream.objects.create(name=f"stream {number}")
    assert statements() == few < 60


def test_everything_has_help_and_a_type(root: Any) -> None:
    text = root.get("metrics").content.decode()
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert names
    assert len(set(names)) == len(names) == text.count("# HELP")
