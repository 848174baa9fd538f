"""Real processes share rows while everything fails; exit code 1 when a promise was broken (docs/reliability.md).

python -m tests.chaos --minutes 1                                 on MariaDB
python -m tests.chaos --minutes 30 --database postgresql --json result.json
python -m tests.chaos --without "fence out of guard"              a guard taken out: the judge must object
python -m tests.chaos --forgetful                                 a server that forgets commits: the judge must object
python -m tests.chaos --prove                                     all of those, shortly; exit code 1 when one goes unnoticed
"""

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.run import Plan, run
from tests.processes import terminable
from tests.servers import SERVERS, ServerFailed, ServerMissing


def main(words: Sequence[str]) -> int:
    chosen = _arguments(words)
    plan = Plan(chosen.database, chosen.minutes * 60, chosen.seed, chosen.forgetful)
    print(f"seed {plan.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="resourcepool-chaos-"))
    try:
        with terminable():
            findings = run(plan, folder)
    except (ServerMissing, ServerFailed) as problem:
        print(problem)
        return 2
    from tests.chaos.report import show, write

    show(plan, findings)
    if chosen.json:
        write(plan, findings, chosen.json)
    if findings.is_clean:
        shutil.rmtree(folder)
        return 0
    print(f"The evidence is in {folder}")
    return 1


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=1, help="how long everything fails; default: 1")
    parser.add_argument("--database", choices=SERVERS, default="mariadb")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--forgetful", action="store_true", help="the server does not flush its commits")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
