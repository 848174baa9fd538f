"""However many messages, channels and subscriptions there are, each statement finds what it wants by index."""

import datetime
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from resourcepool.db.inspection import inspector
from resourcepool.locks import Channel
from resourcepool.locks.channels import poller
from resourcepool.locks.channels.channel import Publication
from resourcepool.locks.channels.models import Channel as ChannelRow, Message as MessageRow
from resourcepool.locks.channels.poller import Poller, pollers
from resourcepool.models import Subscription
from resourcepool.safety.doctor import judge_plan
from resourcepool.status.locks.channels import channels
from resourcepool.sweeps.pruning import prune_channels
from tests.locks.channels.reading import all_of, channel_row as channel, kept

CHANNELS, EACH, SUBSCRIPTIONS = 10, 200, 40
TABLES = {model._meta.db_table for model in (ChannelRow, MessageRow, Subscription)}
SUBSCRIBERS = Subscription._meta.db_table
MESSAGES = MessageRow._meta.db_table
MOMENT = timezone.now() + datetime.timedelta(days=1)


@pytest.fixture(autouse=True)
def _many() -> None:
    ChannelRow.objects.bulk_create(
        ChannelRow(name=f"c{number}", last=EACH, made=number + 1) for number in range(CHANNELS)
    )
    MessageRow.objects.bulk_create(
        MessageRow(channel_id=f"c{of}", number=number, payload="1", publisher="x")
        for of in range(CHANNELS)
        for number in range(1, EACH + 1)
    )
    Subscription.objects.bulk_create(
        Subscription(channel_id=f"c{of}", name=f"s{number}", cursor=EACH - number, is_durable=number % 2 == 0)
        for of in range(CHANNELS)
        for number in range(SUBSCRIPTIONS)
    )
    with connection.cursor() as cursor:
        for table in sorted(TABLES):
            if connection.vendor != "sqlite":  # which chooses well without
                cursor.execute(f"ANALYZE {'TABLE ' if connection.vendor == 'mysql' else ''}{table}")


def sent(send: Callable[[], object]) -> list[tuple[str, Any]]:
    """Return the statements on these tables that it sends, but for those that only add a row."""
    found: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if any(table in sql for table in TABLES) and not sql.startswith("INSERT"):
            found.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        send()
    return found


def publish() -> None:
    Publication("default", Channel("c3")._channel_row, "1", 1_000).send()
    again = Publication("default", Channel("c3")._channel_row, "1", 1_000)
    again.send()
    again.send()


def read() -> None:
    with Channel("c3").subscribe(from_=EACH - 5) as reader:
        assert len(all_of(reader)) == 6


def read_on() -> None:
    with Channel("c3").subscribe("s4") as reader:
        assert len(all_of(reader)) == 4


def begin_elsewhere() -> None:
    Channel("c3").subscribe("new", from_="start").close()
    Channel("c3").subscribe("newer", from_=MOMENT).close()


SENDS: dict[str, Callable[[], object]] = {
    "look": lambda: Poller("default")._read({"c3"}),
    "tell": lambda: pollers._notify("default", "c3"),
    "read": read,
    "read on": read_on,
    "begin": begin_elsewhere,
    "status": lambda: channels("c3"),
    "move": lambda: Subscription.objects.filter(channel_id="c3", name="s4").move("start"),
    "prune": lambda: channel("c3").remove_up_to(20),
    "publish": publish,
}


def test_it_reads_a_few_rows_by_index(monkeypatch: pytest.MonkeyPatch) -> None:
    hints = SimpleNamespace(is_enabled=lambda: True, send=int, address=lambda: 1, listen=id)
    monkeypatch.setattr(poller, "hints", hints)
    for name, send in SENDS.items():
        found = sent(send)
        assert found, name
        for sql, params in found:
            plan = inspector(connection).explain(sql, params)
            if SUBSCRIBERS not in sql:  # those of one channel are few, and may be sorted
                problem = judge_plan(plan, TABLES)
                assert problem is None, f"{name}: {problem}: {sql}"
            assert all(step.index for step in plan.steps if step.table in TABLES), f"{name}: {sql}"


def test_what_is_old_is_found_by_index() -> None:
    """The looks of the pruning at the messages of each channel; it reads all channels and subscribers for that."""
    ChannelRow.objects.update(kept_count=EACH - 20)
    looks_at_messages = [(sql, params) for sql, params in sent(prune_channels) if MESSAGES in sql]
    assert looks_at_messages
    for sql, params in looks_at_messages:
        problem = judge_plan(inspector(connection).explain(sql, params), {MESSAGES})
        assert problem is None, f"{problem}: {sql}"
    assert len(kept("c3")) == EACH - 20
