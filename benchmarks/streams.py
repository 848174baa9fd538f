"""How soon tasks of a stream begin, how many are done and submitted, and what an idle consumer costs.

python -m benchmarks.streams                       by polling, on a private MariaDB; "postgres": on that; 3 minutes
python -m benchmarks.streams mysql --hints         through Redis; "postgres --hints": through NOTIFY
python -m benchmarks.streams mysql --only submits  one part alone; --quick: few samples, which mean little
"""

import argparse
import contextlib
import os
import sys

import django

from benchmarks.places import place
from tests.processes import terminable
from tests.servers import ServerMissing

PARTS = ("submits", "done", "start", "failover", "idle")
OF_HINTS = ("start", "failover")


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.streams",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("database", nargs="?", choices=("mysql", "postgres"), default="mysql")
    parser.add_argument(
        "--hints", action="store_true", help="through Redis, or NOTIFY; by default only what they change"
    )
    parser.add_argument("--only", action="append", choices=PARTS, help="this part alone; may be repeated")
    parser.add_argument("--quick", action="store_true", help="few samples")
    chosen = parser.parse_args(words)
    try:
        with contextlib.ExitStack() as stack:
            url, hints = stack.enter_context(place(chosen.database)), ""
            if chosen.hints:
                hints = "postgresql" if chosen.database == "postgres" else stack.enter_context(place("redis"))
            _measure(url, hints, chosen.only or (OF_HINTS if hints else PARTS), is_quick=chosen.quick)
    except ServerMissing as missing:
        print(missing)
        return 2
    return 0


def _measure(url: str, hints: str, parts: list[str] | tuple[str, ...], *, is_quick: bool) -> None:
    os.environ |= {"DATABASE_URL": url, "BENCH_HINTS": hints, "DJANGO_SETTINGS_MODULE": "project.settings"}
    django.setup()
    from benchmarks import streaming

    how = f"hints by {hints.split(':', maxsplit=1)[0]}" if hints else "polling"
    print(f"{url.split(':', maxsplit=1)[0]}, {how}; load {os.getloadavg()[0]:.1f}", flush=True)
    bench = streaming.Streaming(1 if is_quick else 6)
    for part in PARTS:
        if part in parts:
            getattr(bench, part)()
    print(f"load {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    with terminable():
        sys.exit(main(sys.argv[1:]))
