"""What an operator sees of channels, and does to them, from a shell."""

import json

import pytest

from resourcepool.locks import Channel
from resourcepool.locks.channels.models import Channel as ChannelRow, Message as MessageRow
from resourcepool.management.commands import resourcepool_channels as command
from tests.committed import *  # noqa: F403 (fixtures)
from tests.management.command_runner import run


@pytest.fixture(autouse=True)
def _on_committed_rows(transactional_db: None) -> None:
    pass


@pytest.fixture
def channel() -> Channel:
    channel = Channel("config")
    channel.publish({"level": 1})
    channel.subscribe("indexer", from_="start").close()
    channel.publish({"level": 2})
    return channel


def test_channels_and_the_subscriptions_of_one_are_shown(channel: Channel) -> None:
    assert "config: indexer has no reader; unread messages: 2" in run("channels").out
    shown = run("channels", "show", "config").out
    assert "indexer" in shown
    (one,) = json.loads(run("channels", "show", "config", "--json").out)["channels"]
    assert (one["last"], one["kept"], one["subscriptions"][0]["unread"]) == (2, 2, 2)
    assert "indexer" in run("why", "config").out
    assert "one of config" in run("channels", "show", "x").err


def test_messages_are_published_and_printed(channel: Channel) -> None:
    assert run("channels", "publish", "config", '{"level": 3}').out == "published as number 3\n"
    lines = run("channels", "listen", "config", "--from", "2", "--timeout", "0").out.splitlines()
    assert [json.loads(line)["payload"] for line in lines] == [{"level": 2}, {"level": 3}]
    assert "JSON" in run("channels", "publish", "config", "{").err
    wrong = run("channels", "listen", "config", "--from", "then").err
    assert "--from='then' is not allowed: it must be now, start, or the number of a message" in wrong
    MessageRow.objects.filter(number=1).delete()
    printed = run("channels", "listen", "config", "--from", "1", "--timeout", "0")
    assert "messages 1 to 1 (1) were removed" in printed.err
    assert len(printed.out.splitlines()) == 2


def test_publishing_in_a_channel_that_was_not_there_says_so() -> None:
    first, second = (run("channels", "publish", "confg", "1") for _ in range(2))
    assert (first.out, first.err) == ("published as number 1\n", "channel confg was created\n")
    assert (second.out, second.err) == ("published as number 2\n", "")


NONE_YET = "channel 'confg' does not exist yet; waiting for its first message (Ctrl-C stops)\n"


def test_listening_to_a_channel_that_is_not_there_says_so_and_makes_none() -> None:
    for start in ("now", "start", "7"):
        ran = run("channels", "listen", "confg", "--from", start, "--timeout", "0")
        assert (ran.out, ran.err, ran.code) == ("", NONE_YET, 0)
    assert (
        "--from='12345678901234567890123' is not"
        in run("channels", "listen", "c", "--from", "12345678901234567890123").err
    )
    assert "--from='then' is not allowed" in run("channels", "listen", "confg", "--from", "then").err
    assert "--timeout=-2.0 is not allowed" in run("channels", "listen", "confg", "--timeout", "-2").err
    assert not ChannelRow.objects.exists()


def test_the_first_messages_of_a_channel_that_was_waited_for_are_printed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def publish(pause: float) -> None:
        Channel("confg").publish_many(["a", "b"])

    monkeypatch.setattr(command, "sleep", publish)
    ran = run("channels", "listen", "confg", "--timeout", "0.5")
    assert [json.loads(line)["payload"] for line in ran.out.splitlines()] == ["a", "b"]
    assert ran.err == NONE_YET + "listening (Ctrl-C stops)\n"


def test_ctrl_c_ends_listening(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "sleep", interrupt)
    ran = run("channels", "listen", "confg")
    assert (ran.out, ran.err, ran.code) == ("", NONE_YET + "stopped\n", 0)
