"""The listener: its address, silent services, and failing callbacks."""

import queue
from collections.abc import Callable
from typing import Any

import pytest

from resourcepool import hints
from resourcepool.exceptions import BadOption
from resourcepool.hints import choice
from tests.eventually import eventually
from tests.hints.conftest import choose
from tests.hints.receiver import LONG, End
from tests.hints.test_contract import warnings


class Mute:
    """A choice and a service in one: accepts subscriptions, and never delivers anything."""

    redacted = "mute"

    def __init__(self) -> None:
        self.subscribed: queue.SimpleQueue[str] = queue.SimpleQueue()

    def check_usable(self) -> None: ...

    def open(self) -> "Mute":
        return self

    def subscribe(self, address: str) -> None:
        self.subscribed.put(address)

    def receive(self, timeout: float) -> bool:
        return False

    def echo(self) -> None: ...

    def close(self) -> None: ...


def test_a_silent_subscription_is_renewed_and_the_listener_woken(
    end: Callable[[str], End], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mute = Mute()
    monkeypatch.setattr(choice, "configured", lambda: mute)
    monkeypatch.setattr("resourcepool.hints.threads.ECHO_AFTER", 0.0)
    here = end("here")
    here.listener.listen(here.wake)
    for _ in range(3):
        assert mute.subscribed.get(timeout=LONG) == "here"
        here.woken()
    assert warnings(caplog) == ["hints cannot be received by mute: EchoMissing; falling back to polling"]


class TestInMemory:
    @pytest.fixture(autouse=True)
    def _chosen(self, settings: Any) -> None:
        choose(settings, "memory://")

    def test_all_are_woken_even_if_one_fails(
        self, end: Callable[[str], End], caplog: pytest.LogCaptureFixture
    ) -> None:
        def fail() -> None:
            raise ValueError

        here = end("here")
        here.listener._wakes = {fail: None}
        here.connected()
        assert "error in a hint callback" in caplog.messages

    def test_after_a_stop_it_listens_again(self, end: Callable[[str], End]) -> None:
        here = end("here").connected()
        assert here.listener._thread.is_running
        here.listener.stop()
        assert not here.listener._thread.is_running
        here.forget()
        here.connected()

    def test_it_ends_when_hints_are_switched_off(self, end: Callable[[str], End], settings: Any) -> None:
        thread = end("here").connected().listener._thread
        choose(settings, None)
        eventually(lambda: not thread.is_running, within=LONG)


def test_with_hints_off_there_is_no_thread(end: Callable[[str], End], settings: Any) -> None:
    choose(settings, None)
    here = end("here")
    here.listener.listen(here.wake)
    assert not here.listener._thread.is_running


def test_an_unusable_service_is_refused_by_listen(settings: Any) -> None:
    choose(settings, "redis://host:port")
    with pytest.raises(BadOption, match="redis-py rejects this URL"):
        hints.listen(list)
    hints._own.listener._wakes.clear()


def test_an_address_is_stable_and_fits_its_column() -> None:
    assert hints.address() == hints.address()
    assert 0 < hints.address() < 2**63
