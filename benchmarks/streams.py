"""How soon tasks of a stream begin, how many are done and submitted, what an idle consumer costs; others beside it.

python -m benchmarks.streams                       by polling, on a private MariaDB; "postgres": on that; 10 minutes
python -m benchmarks.streams mysql --hints         through Redis; "postgres --hints": through NOTIFY
python -m benchmarks.streams mysql --only submits  one part alone; --quick: few samples, which mean little
python -m benchmarks.streams --only peers --peer Celery            this one alone; ours is then not in the tables

Peers that this Python does not have are installed into a virtual environment that is gone afterwards.
ZooKeeper is Java's and that of Debian's package zookeeper, or of the jars in the folder BENCH_ZOOKEEPER.
"""

import argparse
import contextlib
import os
import sys
from typing import Any

import django

from benchmarks.peers.beside import beside
from benchmarks.peers.contestants import PEERS
from benchmarks.places import place
from tests.processes import terminable
from tests.servers import ServerMissing

PARTS = ("submits", "done", "start", "failover", "idle", "peers")
NAMES = {"mysql": "MariaDB", "postgres": "PostgreSQL"}
OF_HINTS = ("start", "failover")


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.streams",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("database", nargs="?", choices=NAMES, default="mysql")
    parser.add_argument(
        "--hints", action="store_true", help="through Redis, or NOTIFY; by default only what they change"
    )
    parser.add_argument("--only", action="append", choices=PARTS, help="this part alone; may be repeated")
    parser.add_argument(
        "--peer", action="append", choices=[peer.name for peer in PEERS], help="may be repeated; by default all"
    )
    parser.add_argument("--quick", action="store_true", help="few samples")
    chosen = parser.parse_args(words)
    try:
        with contextlib.ExitStack() as stack:
            url, hints = stack.enter_context(place(chosen.database)), ""
            if chosen.hints:
                hints = "postgresql" if chosen.database == "postgres" else stack.enter_context(place("redis"))
            parts, times = chosen.only or (OF_HINTS if hints else PARTS), 1 if chosen.quick else 6
            figures = _measure(url, hints, parts, times)
        how = f"{NAMES[chosen.database]}, {'hints' if hints else 'polling'}"
        return int("peers" in parts and not beside(figures, how, times, chosen.peer))
    except ServerMissing as missing:
        print(missing)
        return 2


def _measure(url: str, hints: str, parts: list[str] | tuple[str, ...], times: int) -> dict[str, Any]:
    os.environ |= {"DATABASE_URL": url, "BENCH_HINTS": hints, "DJANGO_SETTINGS_MODULE": "project.settings"}
    django.setup()
    from benchmarks import streaming

    how = f"hints by {hints.split(':', maxsplit=1)[0]}" if hints else "polling"
    print(f"{url.split(':', maxsplit=1)[0]}, {how}; load {os.getloadavg()[0]:.1f}", flush=True)
    bench = streaming.Streaming(times)
    for part in PARTS:
        if part in parts and part != "peers":
            getattr(bench, part)()
    print(f"load {os.getloadavg()[0]:.1f}", flush=True)
    return bench.figures


if __name__ == "__main__":
    with terminable():
        sys.exit(main(sys.argv[1:]))
