"""Measures resourcepool beside other ways to do the same, all on the same machine in one run.

python -m benchmarks                              everything, three rounds, about 25 minutes
python -m benchmarks --quick                      a look in less than a minute; its figures mean little
python -m benchmarks --only mysql --json x.json   one database; what was measured, as JSON
python -m benchmarks --points 128,48 --contestants spread,sketch --rounds 1   a part of the cycles, and nothing else
python -m benchmarks --parts grant,waiters        how soon a waiter is told; what 1,000 waiters ask
python -m benchmarks --points 48 --contestants spread,claim --beside ../old   another checkout's package, in turns
"""

import argparse
import contextlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import places, report, speed
from benchmarks.heats import Choice
from benchmarks.machine import machine, server_version
from benchmarks.plan import DATABASES, FULL, PARTS, QUICK, USUAL, Plan
from benchmarks.run import BESIDE, Rounds, Tree
from tests.processes import terminable
from tests.servers import ServerFailed, ServerMissing


def main(words: list[str]) -> int:
    chosen = parser().parse_args(words)
    choice = Choice(chosen.points, chosen.contestants)
    plan = chosen_plan(chosen, choice)
    databases = [name for name in plan.points if name in (chosen.only or USUAL)]
    measured = measure(plan, choice, databases, chosen.beside)
    text = report.tables(measured)
    print("\n" + text)
    if chosen.json:
        chosen.json.write_text(json.dumps(measured, indent=1) + "\n")
    if chosen.markdown:
        report.put_between_marks(chosen.markdown, "measured", text)
        report.put_between_marks(chosen.markdown, "speed", speed.page(measured))
    return 0 if report.is_sound(measured) else 1


def parser() -> argparse.ArgumentParser:
    """Return what understands the words of the command line."""
    words = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    words.add_argument("--quick", action="store_true", help="few processes, one short round")
    words.add_argument(
        "--only",
        action="append",
        choices=DATABASES,
        help=f"this database alone; may be repeated; default: {', '.join(USUAL)}",
    )
    words.add_argument(
        "--points",
        type=listed,
        default=[],
        metavar="P,..",
        help='"128": of so many processes; or "32 on 100000"',
    )
    words.add_argument(
        "--contestants",
        type=listed,
        default=[],
        metavar="C,..",
        help="parts of their names, e.g. sticky,sketch",
    )
    words.add_argument("--parts", type=listed, metavar="P,..", help=f"of {', '.join(PARTS)}; default: all")
    words.add_argument("--rounds", type=int, help="how often everything is measured; the median counts")
    words.add_argument("--seconds", type=float, help="that count, where somebody waits; elsewhere half of it")
    words.add_argument("--warm-up", type=float, metavar="SECONDS", help="that do not count; likewise")
    words.add_argument(
        "--beside", type=Path, metavar="FOLDER", help="another checkout, whose package is measured in turns"
    )
    words.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    words.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables between its two marks")
    return words


def listed(words: str) -> list[str]:
    return [word.strip() for word in words.split(",")]


def chosen_plan(chosen: argparse.Namespace, choice: Choice) -> Plan:
    """Return what to measure; who chooses points or contestants wants to see cycles."""
    plan = (QUICK if chosen.quick else FULL).having(chosen.rounds, chosen.warm_up, chosen.seconds)
    if unknown := set(chosen.parts or ()) - set(PARTS):
        raise SystemExit(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    only_cycles = ("cycles",) if choice.points or choice.contestants else plan.parts
    return replace(plan, parts=tuple(chosen.parts or only_cycles))


def measure(plan: Plan, choice: Choice, databases: list[str], beside: Path | None = None) -> dict[str, Any]:
    """Return everything that was measured; what has no server here is left out, and says so.

    Args:
        beside: another checkout, whose package is measured in turns with this one.
    """
    with contextlib.ExitStack() as stack:
        urls: dict[str, str] = {}
        left_out: dict[str, str] = {}
        # Redis is measured beside MariaDB, in the same rounds.
        for name in [*databases, *(["redis"] if "mysql" in databases else [])]:
            try:
                urls[name] = stack.enter_context(places.place(name))
            except ServerMissing as missing:
                left_out[name] = str(missing)
                print(f"left out: {missing}", flush=True)
        trees = [Tree(places.ROOT, urls)]
        if beside:
            others = {name: places.beside(url, beside) for name, url in urls.items() if name != "redis"}
            trees.append(Tree(beside.resolve(), others, BESIDE))
        rounds = Rounds(plan, choice, trees)
        try:
            rounds.run()
        except KeyboardInterrupt:
            print("\nInterrupted; this is how far it got:", flush=True)
        return {
            "machine": machine(),
            "servers": {name: server_version(url) for name, url in urls.items()},
            "left_out": left_out,
            "rounds": plan.rounds,
            "warm_up": plan.warm_up,
            "seconds": plan.seconds,
            **rounds.medians(),
        }


if __name__ == "__main__":
    with terminable():
        try:
            sys.exit(main(sys.argv[1:]))
        except ServerFailed as failure:
            sys.exit(str(failure))
