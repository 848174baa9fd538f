"""Nodes that handle timers, killed every so often, their database restarted; exit code 1: a promise was broken.

python -m tests.taskqueue.timers.proof                             20,000 timers over 60 s on MariaDB
python -m tests.taskqueue.timers.proof --timers 600 --over 6 --every 1 --database postgresql
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.processes import terminable
from tests.servers import SERVERS, ServerFailed, ServerMissing
from tests.taskqueue.proof.__main__ import _show
from tests.taskqueue.timers.proof.run import Plan, run


def main(words: Sequence[str]) -> int:
    chosen = _arguments(words)
    plan = Plan(chosen.database, chosen.timers, chosen.over, chosen.every, chosen.seed)
    print(f"{plan.database}, seed {plan.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="resourcepool-timers-"))
    with terminable():
        try:
            findings = run(plan, folder)
        except (ServerMissing, ServerFailed) as problem:
            print(problem)
            return 2
    _show(findings)
    if findings.is_clean or chosen.discard:
        shutil.rmtree(folder)
    else:
        print(f"The evidence is in {folder}")
    if chosen.json:
        chosen.json.write_text(json.dumps(asdict(findings), indent=2) + "\n")
    return 0 if findings.is_clean else 1


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.taskqueue.timers.proof",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--database", choices=SERVERS, default="mariadb")
    parser.add_argument("--timers", type=int, default=20_000)
    parser.add_argument("--over", type=float, default=60.0, metavar="SECONDS", help="in which they are due")
    parser.add_argument("--every", type=float, default=2.0, metavar="SECONDS", help="between two kills")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
    parser.add_argument("--discard", action="store_true", help="do not keep the evidence of violations")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
