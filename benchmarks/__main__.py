"""Measures resourcepool beside other ways to do the same, all on the same machine in one run.

python -m benchmarks                              everything, three rounds, about 25 minutes
python -m benchmarks --quick                      a look in half a minute; its figures mean little
python -m benchmarks --only mysql --json x.json   one database; what was measured, as JSON
"""

import argparse
import contextlib
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.machine import machine, server_version
from benchmarks.places import place
from benchmarks.plan import DATABASES, FULL, QUICK, Plan
from benchmarks.run import Rounds
from tests.processes import terminable
from tests.servers import ServerFailed, ServerMissing


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few processes, one short round")
    parser.add_argument(
        "--only", action="append", choices=DATABASES, help="this database alone; may be repeated"
    )
    parser.add_argument("--rounds", type=int, help="how often everything is measured; the median counts")
    parser.add_argument("--seconds", type=float, help="how long each measurement takes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables between its two marks")
    chosen = parser.parse_args(words)
    plan = (QUICK if chosen.quick else FULL).having(chosen.rounds, chosen.seconds)
    measured = measure(plan, chosen.only or plan.databases)
    text = report.tables(measured)
    print("\n" + text)
    if chosen.json:
        chosen.json.write_text(json.dumps(measured, indent=1) + "\n")
    if chosen.markdown:
        report.put_between_marks(chosen.markdown, text)
    return 0 if report.is_sound(measured) else 1


def measure(plan: Plan, databases: list[str] | tuple[str, ...]) -> dict[str, Any]:
    """Return everything that was measured; what has no server here is left out, and says so."""
    with contextlib.ExitStack() as stack:
        urls: dict[str, str] = {}
        left_out: dict[str, str] = {}
        # Redis is measured beside MariaDB, in the same rounds.
        for name in [*databases, *(["redis"] if "mysql" in databases else [])]:
            try:
                urls[name] = stack.enter_context(place(name))
            except ServerMissing as missing:
                left_out[name] = str(missing)
                print(f"left out: {missing}", flush=True)
        rounds = Rounds(plan, urls)
        try:
            rounds.run()
        except KeyboardInterrupt:
            print("\nInterrupted; this is how far it got:", flush=True)
        return {
            "machine": machine(),
            "servers": {name: server_version(url) for name, url in urls.items()},
            "left_out": left_out,
            "rounds": plan.rounds,
            "seconds": plan.seconds,
            **rounds.medians(),
        }


if __name__ == "__main__":
    with terminable():
        try:
            sys.exit(main(sys.argv[1:]))
        except ServerFailed as failure:
            sys.exit(str(failure))
