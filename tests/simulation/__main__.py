"""The simulation: python -m tests.simulation --seeds 100000

--seeds N        number of schedules (default 1000), starting with seed --from (default 0)
--seed N         play one schedule, and print its trace, statement by statement
--without GUARD  first remove the guard of tests/guards with this name; then violations are expected
--keep-going     count the seeds with violations, instead of stopping at the first
--prove          remove each guard in turn, and print how many seeds detect it

Exit code 1 if an invariant is violated; prints the seed, the trace and the command that repeats it.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.guards.tree import copy_without, in_tree
from tests.simulation import schedule
from tests.simulation.prove import all_guards, prove

MEMORY = Path("/dev/shm")
IN_COPY = "SIMULATION_IN_COPY"  # set in a copy of the tree that lacks the guard
PROGRESS = 10_000


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--without", default="")
    parser.add_argument("--keep-going", action="store_true")
    parser.add_argument("--prove", action="store_true")
    return parser.parse_args()


def main(asked: argparse.Namespace) -> int:
    if asked.prove:
        return prove(asked.seeds)
    place = MEMORY if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="resourcepool-simulation-", dir=place) as folder:
        if not asked.without or IN_COPY in os.environ:
            return run(asked, folder)
        copy_without(next(one for one in all_guards() if one.name == asked.without), Path(folder))
        command = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
        return subprocess.run(
            command, cwd=folder, env={**in_tree(Path(folder)), IN_COPY: "1"}, check=False
        ).returncode


def run(asked: argparse.Namespace, folder: str) -> int:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    os.environ["DATABASE_URL"], os.environ["VAR_DIR"] = f"sqlite:///{folder}/db.sqlite3", folder
    import django

    schedule.replace_clocks()
    django.setup()
    from tests.simulation.simulation import Simulation

    simulation = Simulation(f"{folder}/db.sqlite3")
    if asked.seed is not None:
        result = simulation.play(asked.seed, traced=True)
        print("\n".join(result.trace))
        print(f"\nseed {asked.seed}: {result.violation or 'every invariant held'}")
        return 1 if result.violation else 0
    return many(asked, simulation)


def many(asked: argparse.Namespace, simulation: object) -> int:
    began, steps, changes, kills, found = time.perf_counter(), 0, 0, 0, 0
    last = asked.first + asked.seeds
    print(
        f"Seeds {asked.first} to {last - 1}; one of them again, with its trace: {repeat(asked, 'N')}",
        flush=True,
    )
    for seed in range(asked.first, last):
        result = simulation.play(seed)
        steps, changes, kills = steps + result.steps, changes + result.changes, kills + result.kills
        if (seed + 1 - asked.first) % PROGRESS == 0:
            print(f"{seed + 1 - asked.first} played, {found} violations", flush=True)
        if result.violation:
            found += 1
            if not asked.keep_going:
                print("\n".join(simulation.play(seed, traced=True).trace))
            if not asked.keep_going or found <= 20:
                print(f"\nseed {seed}: {result.violation}\nrepeat it: {repeat(asked, seed)}", flush=True)
            if not asked.keep_going:
                return 1
    took, cpu = time.perf_counter() - began, time.process_time()
    print(
        f"{asked.seeds} schedules, {steps} statements, {changes} changes of rows, {kills} processes killed: "
        f"{found} violations; {took:.1f} s ({cpu:.1f} s of one core), "
        f"{asked.seeds / took:.0f} schedules/s"
    )
    return 1 if found else 0


def repeat(asked: argparse.Namespace, seed: object) -> str:
    """Return the command that plays one seed again."""
    without = f' --without "{asked.without}"' if asked.without else ""
    return f"python -m tests.simulation --seed {seed}{without}"


if __name__ == "__main__":
    sys.exit(main(arguments()))
