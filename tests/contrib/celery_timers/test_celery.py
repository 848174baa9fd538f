"""A Celery task is sent at its time, under the same id in each attempt."""

import socket
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery
from kombu import Connection

from resourcepool.contrib.celery_timers import apply_async_at, tasks, timer_handlers
from resourcepool.exceptions import BadOption
from resourcepool.models import Timer, Topic
from resourcepool.taskqueue import timers
from resourcepool.tasks import sweep
from tests.eventually import eventually
from tests.taskqueue.timers.runners import handling, over, timer


class Broker:
    """Records the messages; fails at first."""

    def __init__(self, fails: int = 0) -> None:
        self.sent: list[Any] = []
        self._fails = fails
        self.conf = SimpleNamespace(broker_transport_options={})

    def connection_for_write(self, **_: Any) -> Any:
        return Connection("memory://")

    def send_task(self, *args: Any, **options: Any) -> None:
        self.sent.append((args, options))
        if len(self.sent) <= self._fails:
            raise OSError("the broker is down")


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    made = Broker(fails=2)
    monkeypatch.setattr(timer_handlers, "current_app", made)
    timers.on("celery")(timer_handlers.send)
    return made


def test_a_task_is_sent_at_its_time_and_again_while_the_broker_is_down(broker: Broker) -> None:
    apply_async_at(sweep, after=0.1, args=[1], kwargs={"x": "y"}, name="mine", queue="slow")
    assert (Topic.objects.get().retries, Topic.objects.get().retry_delay) == (1_000, 5.0)
    Topic.objects.update(retry_delay=0)
    with handling():
        over(1)
    assert timer("mine").state == "done"
    assert len(broker.sent) == 3
    args, options = broker.sent[0]
    assert args == ("resourcepool.sweep", [1], {"x": "y"})
    assert options["queue"] == "slow"
    assert len({options["task_id"] for _, options in broker.sent}) == 1


def test_a_broker_that_answers_nothing_fails_the_attempt_and_keeps_no_thread(
    mute_broker: None,
) -> None:
    apply_async_at(sweep, after=0)
    Topic.objects.update(retries=0)
    timers.on("celery")(timer_handlers.send)
    with handling():
        over(1)
    assert Timer.objects.get().outcome.startswith("OperationalError: ")


def test_an_unreachable_broker_is_named_without_its_password(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    timers.on("celery")(timer_handlers.send)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # and it does not listen: connections are refused
        address = f"127.0.0.1:{unused.getsockname()[1]}/0"
        app = Celery(broker=f"redis://crawler:sesame@{address}", set_as_current=False)
        monkeypatch.setattr(timer_handlers, "current_app", app)
        monkeypatch.setattr(tasks, "current_app", app)
        apply_async_at("some.task", after=0)
        with handling(tasks.DispatchingRunner):
            eventually(lambda: caplog.text)
        Topic.objects.update(retries=0)
        with handling():
            over(1)
    for said in (caplog.text, Timer.objects.get().outcome):
        assert f"OperationalError: broker redis://crawler:**@{address}: " in said
        assert "sesame" not in said


def test_each_call_has_a_timer_of_its_own_unless_it_names_one() -> None:
    for _ in range(2):
        apply_async_at("some.task", after=60)
        apply_async_at("some.task", after=60, name="mine")
    assert Timer.objects.count() == 3
    assert timers.cancel("mine", topic="celery") is timers.Outcome.CANCELLED


@pytest.mark.parametrize(
    "options", [{"eta": 1}, {"countdown": 5}, {"task_id": "x"}, {"args": [object()]}, {"after": None}]
)
def test_what_is_not_allowed_is_refused(options: Any) -> None:
    with pytest.raises(BadOption):
        apply_async_at("some.task", **{"after": 1, **options})
    assert not Timer.objects.exists()
