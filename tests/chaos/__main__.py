"""Real processes share rows while everything fails; exit code 1 if a promise was broken.

See docs/internals/reliability.md.

python -m tests.chaos --minutes 1                            on MariaDB
python -m tests.chaos --minutes 30 --database postgresql --json result.json
python -m tests.chaos --rate kills=5 --rate server_killed_every=10
python -m tests.chaos --forgetful                            a server that forgets commits: the judge must object
python -m tests.chaos --without "fence out of guard"         a guard taken out: the judge must object
python -m tests.chaos --prove                                all of those, shortly; exit code 1 when one goes unnoticed
"""

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.proof import KNOWN, prove, without
from tests.chaos.report import show, write
from tests.chaos.run import FORGETFUL, Plan, run
from tests.processes import terminable
from tests.servers import SERVERS, ServerFailed, ServerMissing


def main(words: Sequence[str]) -> int:
    chosen = _arguments(words)
    with terminable():
        if chosen.prove is not None:
            return prove(chosen.database, chosen.prove)
        if chosen.without:
            rest = [word for word in words if word not in ("--without", chosen.without)]
            return without(KNOWN[chosen.without], rest, is_shown=True).returncode
        try:
            return _once(chosen)
        except (ServerMissing, ServerFailed) as problem:
            print(problem)
            return 2
        except KeyboardInterrupt:
            print("\nStopped.")
            return 130


def _once(chosen: argparse.Namespace) -> int:
    rates, seconds = dict(chosen.rate), chosen.minutes * 60
    plan = Plan(chosen.database, seconds, chosen.seed, chosen.forgetful, rates, chosen.acquisitions)
    print(f"seed {plan.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="resourcepool-chaos-"))
    is_kept = False
    try:
        findings = run(plan, folder)
        show(plan, findings)
        if chosen.json:
            write(plan, findings, chosen.json)
        is_kept = not (findings.is_clean or chosen.discard)
    finally:
        if not is_kept:
            shutil.rmtree(folder)
    if is_kept:
        print(f"The evidence is in {folder}")
    return 0 if findings.is_clean else 1


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=_minutes, default=1, help="how long everything fails; default: 1")
    parser.add_argument(
        "--acquisitions", type=int, default=0, metavar="N", help="and for longer, until there were so many"
    )
    parser.add_argument("--database", choices=SERVERS, default="mariadb")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument(
        "--rate", type=_rate, action="append", default=[], help="how often something is thrown, per second"
    )
    parser.add_argument("--forgetful", action="store_true", help="the server does not flush its commits")
    parser.add_argument("--without", choices=KNOWN, metavar="GUARD", help="take a guard of tests/guards.py out")
    parser.add_argument(
        "--prove", nargs="*", metavar="WORD", help="see that the judge objects; WORD: to these alone"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
    parser.add_argument("--discard", action="store_true", help="do not keep the evidence of violations")
    chosen = parser.parse_args(words)
    if chosen.forgetful and chosen.database not in FORGETFUL:
        parser.error(f"--forgetful: only on {', '.join(FORGETFUL)}")
    return chosen


def _minutes(word: str) -> float:
    minutes = float(word)
    if not 0 < minutes <= 24 * 60:
        raise argparse.ArgumentTypeError(f"{word} is not between 0 and {24 * 60}")
    return minutes


def _rate(word: str) -> tuple[str, float]:
    name, _, rate = word.partition("=")
    return name, float(rate)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
