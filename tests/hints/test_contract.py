"""The contract of every service that carries hints."""

import logging
from collections.abc import Callable

import pytest

from resourcepool import hints
from resourcepool.hints.threads import Sender
from tests.eventually import eventually
from tests.hints.receiver import LONG, End
from tests.hints.services import Service

Ends = Callable[[str], End]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.fixture
def _nothing_else_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread of an earlier test could log other warnings."""
    monkeypatch.setattr(hints, "send", lambda *_: None)


@pytest.mark.usefixtures("_nothing_else_sends")
class TestContract:
    def test_a_hint_wakes_the_listener_at_its_address_and_no_other(
        self, service: Service, end: Ends, sender: Sender
    ) -> None:
        here, there = end("here").connected(), end("there").connected()
        for _ in range(3):
            sender.send("here")
            here.woken()
        sender.send("there")
        there.woken()
        assert here.wakes.empty()
        assert there.wakes.empty()

    def test_a_hint_without_a_listener_is_dropped(
        self, service: Service, end: Ends, sender: Sender, caplog: pytest.LogCaptureFixture
    ) -> None:
        here = end("here").connected()
        sender.send("nobody")
        sender.send("here")
        here.woken()
        assert warnings(caplog) == []

    def test_hints_arrive_again_after_an_outage(
        self, lasting: Service, end: Ends, sender: Sender, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, "resourcepool.hints")
        here = end("here").connected()
        sender.send("here")
        here.woken()
        assert lasting.server
        lasting.server.kill()
        sender.send("here")
        sender.flush(LONG)
        eventually(lambda: len(warnings(caplog)) == 2, within=LONG)
        here.forget()
        lasting.server.start()
        here.woken()  # reconnected
        here.woken()  # the echo
        eventually(lambda: sent(sender, here), within=60)
        assert len(warnings(caplog)) == 2
        assert {"sent", "received"} == {message.split()[3] for message in warnings(caplog)}
        again = [message for message in caplog.messages if message.endswith(" again")]
        assert len(again) == 2

    def test_a_session_ended_by_the_server_loses_no_hint(
        self, lasting: Service, end: Ends, sender: Sender, caplog: pytest.LogCaptureFixture
    ) -> None:
        sender.send("here")
        sender.flush(LONG)
        assert lasting.server
        lasting.server.restart()
        here = end("here").connected()
        sender.send("here")
        here.woken()
        assert warnings(caplog) == []


def sent(sender: Sender, end: End) -> bool:
    """Send a hint, and return whether one arrived."""
    sender.send(end.address)
    sender.flush(LONG)
    return not end.wakes.empty()
