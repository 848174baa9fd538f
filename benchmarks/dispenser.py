"""How fast tasks are handed out in buckets, put into a pool and put right in it; others beside it.

python -m benchmarks.dispenser                     on a private MariaDB; "postgres": on that; 5 minutes
python -m benchmarks.dispenser mysql --only drain  one part alone; --quick: few samples, which mean little

The plain driver sends the statements of the dispenser on Django's own connection, without the dispenser's code.
"""

import argparse
import os
import sys

import django

from benchmarks.places import place
from tests.processes import terminable
from tests.servers import ServerMissing

PARTS = ("cycles", "drain", "add", "rebuild", "size")


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.dispenser",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("database", nargs="?", choices=("mysql", "postgres"), default="mysql")
    parser.add_argument("--only", action="append", choices=PARTS, help="this part alone; may be repeated")
    parser.add_argument("--quick", action="store_true", help="few samples")
    chosen = parser.parse_args(words)
    try:
        with place(chosen.database) as url:
            _measure(url, chosen.only or PARTS, 1 if chosen.quick else 3)
    except ServerMissing as missing:
        print(missing)
        return 2
    return 0


def _measure(url: str, parts: list[str] | tuple[str, ...], times: int) -> None:
    os.environ |= {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "project.settings"}
    django.setup()
    from benchmarks.dispensing import Dispensing

    print(f"{url.split(':', maxsplit=1)[0]}; load {os.getloadavg()[0]:.1f}", flush=True)
    bench = Dispensing(times)
    for part in PARTS:
        if part in parts:
            getattr(bench, part)()
            print(f"  (load {os.getloadavg()[0]:.1f})", flush=True)


if __name__ == "__main__":
    with terminable():
        sys.exit(main(sys.argv[1:]))
