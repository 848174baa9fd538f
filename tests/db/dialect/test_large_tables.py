"""On large tables frequent statements read only a few rows, and a count reads only what it counts.

PostgreSQL finds rows by an index only if what it compares with does not change while the statement runs, which
``CLOCK_TIMESTAMP()`` does; and it reads along an index only if ORDER BY names each of its columns: otherwise it reads,
or sorts, all. ``EXPLAIN ANALYZE`` tells how many rows were read.
"""

import datetime
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from resourcepool.db.dialect.statement import ANY_ROW
from resourcepool.history.models import open_leaks
from resourcepool.leases import free_rows
from resourcepool.locks import Channel
from resourcepool.locks.channels.models import Channel as ChannelRow, Message as MessageRow
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import (
    Dispenser,
    DispenserTask,
    Event,
    Move,
    Proxy,
    Queue,
    QueueGroup,
    Sample,
    Stream,
    Task,
    Ticket,
    Timer,
    TimerNode,
    Topic,
)
from resourcepool.status.locks.channels import CHANNELS
from resourcepool.status.queues.problems import flapping_of
from resourcepool.status.resources.activity import ChartRange, recent_events, trend
from resourcepool.status.work.dispensers import DISPENSERS
from resourcepool.status.work.streams import STREAMS
from resourcepool.status.work.timers import MAX_COUNTED, TOPICS
from resourcepool.sweeps import pruning
from resourcepool.sweeps.sweep import clear_expired, report_overtaken
from resourcepool.taskqueue import TaskDispenser, attempts, submit, timers
from resourcepool.taskqueue.dispenser.bucket_lifecycle import WorkerBucket
from resourcepool.taskqueue.policy import Result
from resourcepool.taskqueue.timers import claims, runner as due_timers
from resourcepool.taskqueue.timers.nodes import Node
from resourcepool.waiting import tickets

MANY = 100_000
FEW = 1_000
LONG = 365 * 86_400.0
VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")
NOW = timezone.now()
AGO, AHEAD = (f"CLOCK_TIMESTAMP() {sign} n * INTERVAL '1 minute'" for sign in "-+")
HALF_ARE_OVER = {
    "state": f"CASE WHEN n > {MANY // 2} THEN 'done' ELSE state END",
    "finished_at": f"CASE WHEN n > {MANY // 2} THEN {AGO} END",
}


def copy(model: Any, **columns: str) -> None:
    """Fill a table with copies of its one row; ``columns``: what each copy has instead, in SQL; n is its number."""
    table = model._meta.db_table
    kept = [field for field in model._meta.concrete_fields if field.get_internal_type() != "BigAutoField"]
    names = ", ".join(f'"{field.column}"' for field in kept)
    values = ", ".join(columns.get(field.column, f'"{field.column}"') for field in kept)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({names}) SELECT {values} FROM {table}, GENERATE_SERIES(1, {MANY}) n"
        )
        cursor.execute(f"ANALYZE {table}")


def fill() -> None:
    Topic.objects.create(name="t", done_kept=LONG)
    Timer.objects.create(topic_id="t", name="x", due_at=NOW, busy_before=NOW + datetime.timedelta(days=1))
    copy(
        Timer,
        name="'timer ' || n",
        busy_before=f"CASE WHEN n > 100 THEN {AHEAD} ELSE {AGO} END",
        **HALF_ARE_OVER,
    )
    Stream.objects.create(name="s", done_kept=LONG)
    Task.objects.create(stream_id="s", key="x", type="note")
    copy(Task, key="'task ' || n", task_time=AHEAD, **HALF_ARE_OVER)
    TaskDispenser("d").add("x", 1.0)
    Dispenser.objects.update(done_kept=LONG)
    copy(DispenserTask, key="'task ' || n", score="n", **HALF_ARE_OVER)
    Proxy.objects.create(host="h", port=80, holder="somebody")
    copy(Proxy, host="'h' || n", busy_before=f"CASE WHEN n > 100 THEN {AHEAD} ELSE {AGO} END")
    Ticket.objects.create(pool="resourcepool.lock:0", asked_at=NOW, holder="somebody")
    copy(Ticket, pool="'resourcepool.lock:' || MOD(n, 1000)", busy_before=AHEAD)
    Event.objects.create(at=NOW, what="acquired", pool="resourcepool.proxy", row="1")
    copy(
        Event,
        at=AGO,
        row="n::text",
        what="CASE MOD(n, 3) WHEN 0 THEN 'leaked' WHEN 1 THEN 'lost' ELSE what END",
    )
    Sample.objects.create(pool="resourcepool.proxy", minute=NOW)
    copy(Sample, minute=AGO)
    LockRow.objects.create(name="x")
    copy(LockRow, name="'lock ' || n", busy_before=AHEAD)
    Channel("c").publish(1)
    copy(MessageRow, number="n + 1", published_at=f"CLOCK_TIMESTAMP() - ({MANY} - n) * INTERVAL '1 minute'")
    ChannelRow.objects.update(last=MANY + 1, kept=LONG, kept_count=2 * MANY)
    queue_group = QueueGroup.objects.create(name="tt")
    Queue.objects.create(queue_group=queue_group, queue_id="x")
    copy(Queue, queue_id="'queue ' || n")
    Move.objects.create(
        queue_group="tt", generation=1, queue_pk=1, queue_id="x", what="x", fence=1, at=NOW, reason="{}"
    )
    copy(Move, at=AGO, generation="n")


@contextmanager
def explained() -> Iterator[list[tuple[int, str]]]:
    """Tell of each statement how many rows its busiest step read."""
    found: list[tuple[int, str]] = []

    def explain(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.split(None, 1)[0] in VERBS and "SET_CONFIG" not in sql:
            with transaction.atomic():  # EXPLAIN ANALYZE runs it
                execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", params, many, context)
                ((said,),) = context["cursor"].fetchall()
                transaction.set_rollback(True)
            found.append((most_read(said[0]["Plan"]), re.sub(r"(%s, )+", "", sql)))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(explain):
        yield found


def most_read(step: dict[str, Any]) -> int:
    passed_over = sum(count for name, count in step.items() if name.startswith("Rows Removed by"))
    read = round((step["Actual Rows"] + passed_over) * step["Actual Loops"])
    return max([read, *(most_read(inner) for inner in step.get("Plans", ()))])


def turn_of_a_node() -> None:
    due = due_timers.read_due("default", ["t"], 65, 100)
    rules = due_timers.read_topics("default", ["t"])
    claimed, _ = claims.finish_and_claim("default", [], [one.pk for one in due], rules, "me")
    assert len(claimed) == 100
    claims.finish_and_claim("default", [(one, Result("")) for one in claimed], [], rules, "me")


def renewal_of_a_node() -> None:
    node = Node("default", {}, "")
    node.renew(["t"])
    node.renew(["t", "u"])
    node.leave()
    assert not TimerNode.objects.exists()


def turn_of_a_leader() -> None:
    heads = attempts.first_tasks("default", "s", {"another lane"}, 20)
    assert len(attempts.begin("default", heads, 1, "me")) == 20


FREQUENT: dict[str, Callable[[], object]] = {
    "a node's turn": turn_of_a_node,
    "a node's renewal": renewal_of_a_node,
    "schedule": lambda: timers.schedule("new", topic="t", after=5),
    "cancel": lambda: timers.cancel("new", topic="t"),
    "late timers": lambda: list(Timer.objects.filter(topic="t").late().in_order()[:10]),
    "a leader's turn": turn_of_a_leader,
    "submit": lambda: submit("s", "note"),
    "assign": lambda: WorkerBucket("default", "d", "worker", 60).fill(20),
    "publish": lambda: Channel("c").publish(2),
    "subscribe": lambda: Channel("c").subscribe("new", from_=NOW).close(),
    "free rows": lambda: free_rows.candidates(connection, Proxy, ANY_ROW, 64),
    "free rows while waiting": lambda: free_rows.read_free_rows(connection, Proxy, ANY_ROW, 9),
    "the line": lambda: tickets.in_line(connection, LockRow, 8, "5"),
    "recent events": lambda: recent_events(["resourcepool.Proxy"]),
    "leaks": lambda: open_leaks(["resourcepool.Proxy"]),
    "chart": lambda: trend("resourcepool.Proxy", ChartRange.HOUR),
    "expired leases": lambda: clear_expired(Proxy),
    "overtaken leases": lambda: report_overtaken(Proxy),
    "restless queues": lambda: flapping_of("default"),
    "channel": lambda: CHANNELS.get("c"),
    "look for what is to be removed": pruning.prune_finished,
}
# These count up to 10,000.
READINGS: dict[str, Callable[[], object]] = {
    "topic": lambda: TOPICS.get("t"),
    "stream": lambda: STREAMS.get("s"),
    "dispenser": lambda: DISPENSERS.get("d"),
}


@pytest.mark.only("postgresql")
def test_what_is_sent_all_the_time_reads_a_few_of_very_many_rows() -> None:
    fill()
    too_many = []
    for sends, most in ((FREQUENT, FEW), (READINGS, MAX_COUNTED + FEW)):
        for name, send in sends.items():
            with explained() as found:
                send()
            assert found, name
            too_many += [(name, read, sql) for read, sql in found if read > most]
    assert too_many == []
