"""How long queues take to settle when servers come, go and die, and what planning costs.

python -m benchmarks.queues                      on a private MariaDB; "postgres", "sqlite": on those
python -m benchmarks.queues mysql --only plan    planning alone; or settle, idle
"""

import argparse
import os
import sys

import django

from benchmarks.places import place
from tests.processes import terminable
from tests.servers import ServerMissing

PARTS = ("settle", "plan", "idle")


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.queues",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("database", nargs="?", choices=("mysql", "postgres", "sqlite"), default="mysql")
    parser.add_argument("--only", action="append", choices=PARTS, help="this part alone; may be repeated")
    parser.add_argument("--rounds", type=int, default=3, help="how often servers come, go and die; default: 3")
    chosen = parser.parse_args(words)
    parts = chosen.only or PARTS
    try:
        with place(chosen.database) as url:
            os.environ |= {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "project.settings"}
            django.setup()
            from benchmarks import planning, settling

            print(f"{chosen.database}; load {os.getloadavg()[0]:.1f}", flush=True)
            if "plan" in parts:
                planning.measure()
            if "idle" in parts:
                settling.measure_idle()
            if "settle" in parts:
                for heartbeat, judge_dead in settling.TERMS:
                    settling.measure(heartbeat, judge_dead, chosen.rounds)
    except ServerMissing as missing:
        print(missing)
        return 2
    return 0


if __name__ == "__main__":
    with terminable():
        sys.exit(main(sys.argv[1:]))
