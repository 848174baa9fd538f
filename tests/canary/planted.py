"""The planted secrets and hostile text, and how to search for them."""

import csv
import io
from typing import Any

from resourcepool.db.dialect import DbLater, DbNow
from resourcepool.elections.models import Election as ElectionRow
from resourcepool.locks.channels.models import Channel as ChannelRow, Message as MessageRow
from resourcepool.locks.models import Lock as LockRow
from resourcepool.models import (
    Barrier,
    Bucket,
    ConditionWaiter,
    Dispenser,
    DispenserTask,
    Event,
    Job,
    Move,
    Proxy,
    Queue,
    QueueGroup,
    RWLockPermit,
    Sample,
    SemaphorePermit,
    Server,
    Stream,
    Subscription,
    Task,
    Ticket,
    Timer,
    TimerNode,
    Topic,
)
from tests.app.rows import change, expire, granted, new
from tests.waiting.threads import ticket

PASSWORD = "c4nary-p4ss"  # of a proxy
TOKEN = "c4nary-t0ken"  # in the address of the page that checks ask for
DATABASE = "c4nary-d4tabase"  # the password of the database
SECRETS = (PASSWORD, TOKEN, DATABASE)
SEALED = "gAAAA"  # how whatever is encrypted with Fernet begins

TARGET = f"http://8.8.8.8/?key={TOKEN}"
DATABASE_URLS = {
    "mysql": f"mysql://joe:{DATABASE}@127.0.0.1:1/pool",
    "postgresql": f"postgres://joe:{DATABASE}@127.0.0.1:1/pool",
}

SCRIPT = "<script>alert(1)</script>"
TERMINAL = "\x1b[31m\x1b]0;owned\x07"
CONTROLS = set("\x1b\x07\u202e")
HOSTILE = f"=1+1{SCRIPT}{TERMINAL}\u202e\n"
FORMULAS = tuple("=+-@\t\r")


def plant() -> Proxy:
    """Return a leased proxy with a password, beside a row of everything else there is; every text is hostile."""
    proxy: Proxy = new(Proxy, host="held.example", username="joe", password=PASSWORD, notes=HOSTILE)
    granted(proxy, "somebody")
    change(proxy, holder=HOSTILE, reason=HOSTILE)
    proxy.refresh_from_db()
    about = {"pool": "resourcepool.proxy", "row": str(proxy.pk), "fence": proxy.fence}
    hostile = {"holder": HOSTILE, "actor": HOSTILE, "reason": HOSTILE, "host": HOSTILE}
    for what in ("acquired", "revoked", "leaked"):
        Event.objects.create(at=DbNow(), what=what, seconds=3, **about, **hostile)
    Sample.objects.create(pool="resourcepool.proxy", minute=DbLater(-90), free=1)
    Job.objects.create(name="check resourcepool.Proxy", failed_at=DbNow(), result=HOSTILE, memory="")
    Job.objects.create(name=HOSTILE, done_at=DbNow(), result=HOSTILE, holder=HOSTILE)
    plant_queues()
    plant_timers()
    plant_locks()
    plant_channels()
    ticket(Proxy, holder=HOSTILE)
    left = new(Proxy, username=SCRIPT, password=PASSWORD, notes="=1+1;=2\t=3\n;=4")
    granted(left, "dead")
    expire(left)
    change(left, holder=HOSTILE)
    return proxy


def plant_queues() -> None:
    """Make a queue group with a server, a queue and a move; every text is hostile."""
    kind = QueueGroup.objects.create(name=HOSTILE, assigned_by=HOSTILE, assigned_at=DbNow())
    labels = {HOSTILE: HOSTILE}
    lease = {"busy_before": DbLater(600), "fence": 1, "holder": HOSTILE, "ttl": 600, "registered_at": DbNow()}
    server = Server.objects.create(queue_group=kind, name=HOSTILE, labels=labels, **lease)
    texts = {"parameter": HOSTILE, "pin": HOSTILE, "labels": labels}
    Queue.objects.create(queue_group=kind, queue_id=HOSTILE, cur_server=server, since=DbNow(), **texts)
    about = {"generation": 1, "queue_pk": 1, "fence": 1, "what": Move.Action.ASSIGNED, "at": DbNow()}
    stream = Stream.objects.create(name=HOSTILE, elected_at=DbNow())
    change(stream, holder=HOSTILE)
    change(ElectionRow.objects.create(name=HOSTILE, elected_at=DbNow()), holder=HOSTILE)
    said = dict.fromkeys(("key", "type", "lane", "params", "outcome", "holder"), HOSTILE)
    Task.objects.create(stream=stream, state=Task.State.BLOCKED, **said)
    plant_dispenser()

    names = dict.fromkeys(("queue_group", "queue_id", "from_server", "to_server", "reason"), HOSTILE)
    Move.objects.create(**about, **names)


def plant_dispenser() -> None:
    """Make a dispenser with a bucket and a failed task; every text is hostile."""
    dispenser = Dispenser.objects.create(name=HOSTILE)
    bucket = Bucket.objects.create(dispenser=dispenser, name=HOSTILE)
    change(bucket, holder=HOSTILE, busy_before=DbLater(600))
    state = DispenserTask.State.FAILED
    about = {"key": HOSTILE, "outcome": HOSTILE, "finished_at": DbNow()}
    DispenserTask.objects.create(dispenser=dispenser, bucket=bucket, score=1, state=state, **about)


def plant_timers() -> None:
    """Make a topic with a timer and a node that may not handle it; every text is hostile."""
    labels = {HOSTILE[:50]: HOSTILE[:50]}
    topic = Topic.objects.create(name=HOSTILE, requires=labels, least_version="9")
    said = dict.fromkeys(("name", "payload", "outcome", "holder"), HOSTILE)
    Timer.objects.create(topic=topic, due_at=DbNow(), schedule=HOSTILE, **said)
    node = TimerNode.objects.create(name=HOSTILE, labels=labels, version=HOSTILE[:50], topics=[HOSTILE])
    granted(node, HOSTILE)


def plant_locks() -> None:
    """Make locks and permits of each kind, two of them in a circle; every text is hostile."""
    holders = [f"{HOSTILE}/1/t/a.{number}@{number}" for number in (1, 2)]
    for name, holder, other in zip((HOSTILE, SCRIPT), holders, reversed(holders), strict=True):
        change(LockRow.objects.create(name=name), holder=holder, busy_before=DbLater(600))
        for model in (SemaphorePermit, RWLockPermit, ConditionWaiter, Barrier):
            change(model.objects.create(key=f"{name}#0", name=name), holder=holder, busy_before=DbLater(600))
        line = {"pool": f"resourcepool.lock:{name}", "selector": name, "busy_before": DbLater(600)}
        Ticket.objects.create(holder=other.replace("a.", "a.9"), asked_at=DbLater(-100), **line)


def plant_channels() -> None:
    """Make a channel with a message and a durable subscription that lags; every text is hostile."""
    channel = ChannelRow.objects.create(name=HOSTILE, last=1)
    MessageRow.objects.create(channel=channel, number=1, payload=HOSTILE, publisher=HOSTILE)
    change(Subscription.objects.create(channel=channel, name=HOSTILE), holder=HOSTILE)


def found_in(text: Any) -> list[str]:
    """Return the secrets that ``text`` gives away."""
    return [secret for secret in SECRETS if secret in str(text)]


def formulas_in(text: str) -> list[str]:
    """Return the cells of this CSV that a spreadsheet would carry out, whichever character it splits at."""
    read = [
        row for delimiter in ",;\t" for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    ]
    return [cell for row in read for cell in row if cell.startswith(FORMULAS)]
