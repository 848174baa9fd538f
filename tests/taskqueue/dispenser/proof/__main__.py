"""Workers of a dispenser under misfortunes, its pool rebuilt every second; exit code 1: a promise was broken.

python -m tests.taskqueue.dispenser.proof                                   100,000 tasks on MariaDB
python -m tests.taskqueue.dispenser.proof --tasks 20000 --database sqlite
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
from tests.taskqueue.dispenser.proof.run import Plan, run
from tests.taskqueue.proof.__main__ import _show


def main(words: Sequence[str]) -> int:
    chosen = _arguments(words)
    plan = Plan(chosen.database, chosen.tasks, chosen.every, chosen.seed)
    print(f"{plan.database}, seed {plan.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="resourcepool-dispenser-"))
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
        prog="python -m tests.taskqueue.dispenser.proof",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--database", choices=("sqlite", *SERVERS), default="mariadb")
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--every", type=float, default=0.7, metavar="SECONDS", help="between two misfortunes")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
    parser.add_argument("--discard", action="store_true", help="do not keep the evidence of violations")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
