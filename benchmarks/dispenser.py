"""How fast tasks are handed out in buckets, put into a pool and put right in it; others beside it.

python -m benchmarks.dispenser                     on a private MariaDB; "postgres": on that; 15 minutes
python -m benchmarks.dispenser mysql --only drain  one part alone; --quick: few samples, which mean little
python -m benchmarks.dispenser --only peers --peer Celery               this one alone, as a dispenser and as a timer

The plain driver sends the statements of the dispenser on Django's own connection, without the dispenser's code.
"""

import argparse
import os
import sys

import django

from benchmarks.peers.workers import NAMES, workers
from benchmarks.places import place
from tests.processes import terminable
from tests.servers import ServerMissing

PARTS = ("cycles", "drain", "add", "rebuild", "size", "peers")


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.dispenser",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("database", nargs="?", choices=("mysql", "postgres"), default="mysql")
    parser.add_argument("--only", action="append", choices=PARTS, help="this part alone; may be repeated")
    parser.add_argument("--peer", action="append", choices=NAMES, help="may be repeated")
    parser.add_argument("--quick", action="store_true", help="few samples")
    chosen = parser.parse_args(words)
    parts = chosen.only or PARTS
    try:
        if set(parts) - {"peers"}:
            with place(chosen.database) as url:
                _measure(url, parts, 1 if chosen.quick else 3)
        return int("peers" in parts and not workers(chosen.peer))
    except ServerMissing as missing:
        print(missing)
        return 2


def _measure(url: str, parts: list[str] | tuple[str, ...], times: int) -> None:
    os.environ |= {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "project.settings"}
    django.setup()
    from benchmarks.dispensing import Dispensing

    print(f"{url.split(':', maxsplit=1)[0]}; load {os.getloadavg()[0]:.1f}", flush=True)
    bench = Dispensing(times)
    for part in PARTS:
        if part in parts and part != "peers":
            getattr(bench, part)()
            print(f"  (load {os.getloadavg()[0]:.1f})", flush=True)


if __name__ == "__main__":
    with terminable():
        sys.exit(main(sys.argv[1:]))
