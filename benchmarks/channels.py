"""How fast messages are published, and how soon they are received.

python -m benchmarks.channels                      by polling, on a private MariaDB; "postgres": on that; 1 minute
python -m benchmarks.channels mysql --hints        through Redis; "postgres --hints": through NOTIFY
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import django

from benchmarks.places import place
from tests.processes import terminable
from tests.servers import ServerMissing

SUBSCRIBERS = 8
SECONDS = 5.0
LATENCIES = 150
PAUSES = (0.02, 0.3)  # seconds between two messages, of which the latency is measured


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.channels",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("database", nargs="?", choices=("mysql", "postgres"), default="mysql")
    parser.add_argument("--hints", action="store_true", help="through Redis, or NOTIFY")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args(words)
    if chosen.work:
        _set_up()
        WORKS[chosen.work[0]](Path(chosen.work[1]))
        return 0
    try:
        with contextlib.ExitStack() as stack:
            url, hints = stack.enter_context(place(chosen.database)), ""
            if chosen.hints:
                hints = "postgresql" if chosen.database == "postgres" else stack.enter_context(place("redis"))
            _measure(url, hints)
    except ServerMissing as missing:
        print(missing)
        return 2
    return 0


def _set_up() -> None:
    django.setup()
    from django.conf import settings

    if hints := os.environ.get("BENCH_HINTS"):
        settings.RESOURCEPOOL = {**settings.RESOURCEPOOL, "HINTS": hints}


def _measure(url: str, hints: str) -> None:
    os.environ |= {"DATABASE_URL": url, "BENCH_HINTS": hints, "DJANGO_SETTINGS_MODULE": "project.settings"}
    _set_up()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    how = f"hints by {hints.split(':', maxsplit=1)[0]}" if hints else "polling"
    print(f"{url.split(':', maxsplit=1)[0]}, {how}; load {os.getloadavg()[0]:.1f}", flush=True)
    for count, work in ((1, "one"), (8, "one"), (8, "own")):
        published = sum(sum(each) for each in _run(work, count))
        where = "in one channel" if work == "one" else "each in a channel of its own"
        print(f"  {count} publishing, {where:<30}{published / SECONDS:>8,.0f} messages/s", flush=True)
    for pause in PAUSES:
        _latency(pause)
    print(f"load {os.getloadavg()[0]:.1f}", flush=True)


def _run(work: str, count: int, meanwhile: Any = None) -> list[Sequence[float]]:
    """Return what so many processes that do this work have written down."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / str(number) for number in range(count)]
        command = [sys.executable, "-m", "benchmarks.channels", "--work", work]
        started = [subprocess.Popen([*command, str(file)]) for file in files]
        if meanwhile:
            meanwhile()
        for process in started:
            process.wait()
        return [json.loads(file.read_text()) for file in files]


def _publish(name: str, file: Path) -> None:
    from resourcepool.locks import Channel

    channel, count = Channel(name), 0
    channel.publish(0)
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        channel.publish({"n": count})
        count += 1
    file.write_text(json.dumps([count]))


def _listen(file: Path) -> None:
    from resourcepool.locks import Channel

    lags = []
    with Channel("latency").subscribe() as messages:
        for message in messages:
            if message.payload is None:
                break
            lags.append(time.monotonic() - message.payload)
    file.write_text(json.dumps(lags))


def _latency(pause: float) -> None:
    def publish() -> None:
        from resourcepool.locks import Channel
        from resourcepool.models import Subscription

        while Subscription.objects.filter(channel_id="latency").exclude(address=0).count() < SUBSCRIBERS:
            time.sleep(0.1)
        time.sleep(2)
        for _ in range(LATENCIES if pause < 0.1 else LATENCIES // 3):
            Channel("latency").publish(time.monotonic())
            time.sleep(pause)
        Channel("latency").publish(None)

    lags = sorted(lag for each in _run("listen", SUBSCRIBERS, publish) for lag in each)
    shown = ", ".join(f"p{of} {lags[int(len(lags) * of / 100)] * 1_000:.0f} ms" for of in (50, 99))
    print(f"  publish to received, {SUBSCRIBERS} subscribers, every {pause * 1_000:g} ms: {shown}", flush=True)


WORKS: dict[str, Any] = {
    "one": lambda file: _publish("bench", file),
    "own": lambda file: _publish(f"bench {os.getpid()}", file),
    "listen": _listen,
}


if __name__ == "__main__":
    with terminable():
        sys.exit(main(sys.argv[1:]))
