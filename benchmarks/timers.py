"""How late timers are begun, and what a million of them costs while none is due.

python -m benchmarks.timers                        by polling, on a private MariaDB; "postgres": on that; 2 minutes
python -m benchmarks.timers mysql --hints          through Redis; "postgres --hints": through NOTIFY
python -m benchmarks.timers mysql --only pending   one part alone
"""

import argparse
import contextlib
import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django

from benchmarks.places import place
from tests.processes import terminable
from tests.servers import ServerMissing

NODES, THREADS = 2, 8
SECONDS, PER_SECOND = 10, 1_000
AHEAD, SET_PER_SECOND = 0.3, 100  # of those that are set while the nodes run
PENDING = 1_000_000
IDLE = 10.0  # seconds
TOPIC = "bench"
PARTS = ("due", "set", "pending")


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.timers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("database", nargs="?", choices=("mysql", "postgres"), default="mysql")
    parser.add_argument("--hints", action="store_true", help="through Redis, or NOTIFY")
    parser.add_argument("--only", action="append", choices=PARTS, help="this part alone; may be repeated")
    parser.add_argument("--pending", type=int, default=PENDING, help="default: %(default)d")
    parser.add_argument("--node", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args(words)
    if chosen.node:
        django.setup()
        _node(chosen.node)
        return 0
    try:
        with contextlib.ExitStack() as stack:
            url, hints = stack.enter_context(place(chosen.database)), ""
            if chosen.hints:
                hints = "postgresql" if chosen.database == "postgres" else stack.enter_context(place("redis"))
            _measure(url, hints, chosen.only or PARTS, chosen.pending)
    except ServerMissing as missing:
        print(missing)
        return 2
    return 0


def _measure(url: str, hints: str, parts: Any, pending: int) -> None:
    os.environ |= {"DATABASE_URL": url, "BENCH_HINTS": hints, "DJANGO_SETTINGS_MODULE": "project.settings"}
    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    if hints:
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HINTS": hints}
    call_command("migrate", verbosity=0)
    how = f"hints by {hints.split(':', maxsplit=1)[0]}" if hints else "polling"
    print(f"{url.split(':', maxsplit=1)[0]}, {how}; load {os.getloadavg()[0]:.1f}", flush=True)
    if "due" in parts:
        _show(f"{PER_SECOND:,} due each second, set before", _lags(_due))
    if "set" in parts:
        _show(f"{SET_PER_SECOND} each second, set {AHEAD:g} s before they are due", _lags(_set))
    if "pending" in parts:
        _pending(pending)
    print(f"load {os.getloadavg()[0]:.1f}", flush=True)


def _node(file: Path) -> None:
    from django.conf import settings

    from resourcepool.taskqueue import timers

    if os.environ["BENCH_HINTS"]:
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HINTS": os.environ["BENCH_HINTS"]}
    lags: list[float] = []
    timers.on(TOPIC)(lambda one: lags.append(time.time() - one.due_at.timestamp()))
    runner = timers.TimerRunner(threads=THREADS)
    signal.signal(signal.SIGTERM, lambda *_: runner.stop())
    runner.run()
    file.write_text(json.dumps(lags))


@contextlib.contextmanager
def _nodes(folder: Path) -> Iterator[list[float]]:
    """Run nodes for the length of the block; afterwards there are the lags of what they have handled."""
    from resourcepool.models import TimerNode

    files = [folder / str(number) for number in range(NODES)]
    command = [sys.executable, "-m", "benchmarks.timers", "--node"]
    nodes = [subprocess.Popen([*command, str(file)]) for file in files]
    lags: list[float] = []
    while TimerNode.objects.count() < NODES:
        time.sleep(0.1)
    yield lags
    for node in nodes:
        node.send_signal(signal.SIGTERM)
    for node in nodes:
        node.wait()
    lags += [lag for file in files for lag in json.loads(file.read_text())]


def _lags(work: Any) -> list[float]:
    from resourcepool.models import Timer, Topic

    Timer.objects.all()._raw_delete("default")
    Topic.objects.get_or_create(name=TOPIC)
    with tempfile.TemporaryDirectory() as folder, _nodes(Path(folder)) as lags:
        work()
        while Timer.objects.unfinished().exists():
            time.sleep(0.2)
    return lags


def _due() -> None:
    from django.db import connection

    from resourcepool.db.dialect import read_clock
    from resourcepool.models import Timer

    count = SECONDS * PER_SECOND
    start = read_clock(connection) + datetime.timedelta(seconds=8)
    moments = [start + datetime.timedelta(seconds=number / PER_SECOND) for number in range(count)]
    rows = [Timer(topic_id=TOPIC, name=f"n{i}", due_at=at, busy_before=at) for i, at in enumerate(moments)]
    Timer.objects.bulk_create(rows, batch_size=1_000)


def _set() -> None:
    from resourcepool.taskqueue import timers

    begun = time.monotonic()
    for number in range(SECONDS * SET_PER_SECOND):
        time.sleep(max(0.0, begun + number / SET_PER_SECOND - time.monotonic()))
        timers.schedule(f"n{number}", topic=TOPIC, after=AHEAD)


def _show(what: str, lags: list[float]) -> None:
    ordered = sorted(lag * 1_000 for lag in lags)
    at = {share: ordered[min(len(ordered) - 1, int(len(ordered) * share))] for share in (0.5, 0.99)}
    early = sum(lag < 0 for lag in ordered)
    print(
        f"{what}: {len(ordered):,} handled by {NODES} nodes; lag ms p50 {at[0.5]:.1f}, p99 {at[0.99]:.1f}, "
        f"max {ordered[-1]:.1f}; early {early}",
        flush=True,
    )


def _pending(count: int) -> None:
    from django.db import connection
    from django.db.backends.utils import CursorWrapper

    from resourcepool.models import Timer, Topic
    from resourcepool.taskqueue import timers
    from resourcepool.taskqueue.timers import runner as due_timers

    Timer.objects.all()._raw_delete("default")
    Topic.objects.get_or_create(name=TOPIC)
    timers.schedule("template", topic=TOPIC, after=datetime.timedelta(days=365))
    columns = [field.column for field in Timer._meta.concrete_fields if field.name not in ("id", "name")]
    names, series = (
        ", ".join(columns),
        {"mysql": f"seq_1_to_{count}", "postgresql": f"generate_series(1, {count})"},
    )
    begun, number = time.monotonic(), "seq" if connection.vendor == "mysql" else "s"
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO resourcepool_timer (name, {names}) SELECT CONCAT('n', s.{number}),"
            f" {', '.join(f't.{one}' for one in columns)} FROM resourcepool_timer t, {series[connection.vendor]} s"
        )
        cursor.execute(
            "ANALYZE TABLE resourcepool_timer" if connection.vendor == "mysql" else "ANALYZE resourcepool_timer"
        )
    print(f"{count:,} pending timers, inserted in {time.monotonic() - begun:.0f} s", flush=True)
    for rows in due_timers._heads("default", TOPIC, 33, 32):
        sql, params = rows.query.get_compiler("default").as_sql()
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN {sql}", params)
            print(*cursor.fetchall(), sep="\n")
    looks = []
    for _ in range(50):
        begun = time.perf_counter()
        due_timers.read_due("default", [TOPIC], 33, 32)
        looks.append((time.perf_counter() - begun) * 1_000)
    print(f"a look: median {sorted(looks)[25]:.2f} ms", flush=True)
    sent: list[str] = []
    execute = CursorWrapper.execute

    def counted(self: CursorWrapper, sql: Any, params: Any = None) -> Any:
        sent.append(str(sql))
        return execute(self, sql, params)

    timers.on(TOPIC)(print)
    runner = timers.TimerRunner()
    thread = threading.Thread(target=runner.run)
    thread.start()
    time.sleep(2)
    CursorWrapper.execute = counted  # type: ignore[method-assign]
    time.sleep(IDLE)
    CursorWrapper.execute = execute  # type: ignore[method-assign]
    runner.stop()
    thread.join()
    print(f"an idle node: {len(sent) / IDLE:.1f} statements a second", flush=True)


if __name__ == "__main__":
    with terminable():
        sys.exit(main(sys.argv[1:]))
