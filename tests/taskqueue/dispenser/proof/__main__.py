"""Workers of a dispenser under misfortunes, its pool rebuilt every second; exit code 1: a promise was broken.

python -m tests.taskqueue.dispenser.proof                                   100,000 tasks on MariaDB
python -m tests.taskqueue.dispenser.proof --tasks 20000 --database sqlite
python -m tests.taskqueue.dispenser.proof --without "lowest score first"    a guard taken out: the judge must object
python -m tests.taskqueue.dispenser.proof --prove                           every guard, one after the other
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
from tests.proving import prove, without
from tests.servers import SERVERS, ServerFailed, ServerMissing
from tests.taskqueue.dispenser.proof.prove import CASES, KNOWN, WORDS
from tests.taskqueue.dispenser.proof.run import PATIENCE, Plan, run
from tests.taskqueue.proof.__main__ import _show

PROOF = "tests.taskqueue.dispenser.proof"


def main(words: Sequence[str]) -> int:
    chosen = _arguments(words)
    with terminable():
        try:
            if chosen.prove:
                return prove(PROOF, CASES, ["--database", chosen.database, *WORDS])
            if chosen.without:
                rest = [word for word in words if word not in ("--without", chosen.without)]
                return without(PROOF, KNOWN[chosen.without], rest, is_shown=True).returncode
            return _once(chosen)
        except (ServerMissing, ServerFailed) as problem:
            print(problem)
            return 2


def _once(chosen: argparse.Namespace) -> int:
    plan = Plan(chosen.database, chosen.tasks, chosen.every, chosen.seed, chosen.patience)
    print(f"{plan.database}, seed {plan.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="resourcepool-dispenser-"))
    findings = run(plan, folder)
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
        prog=f"python -m {PROOF}",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--database", choices=("sqlite", *SERVERS), default="mariadb")
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--every", type=float, default=0.7, metavar="SECONDS", help="between two misfortunes")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument(
        "--patience", type=float, default=PATIENCE, metavar="SECONDS", help="without anything done: the end"
    )
    parser.add_argument("--without", choices=KNOWN, metavar="GUARD", help="take a guard out first")
    parser.add_argument("--prove", action="store_true", help="see that the judge objects")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
    parser.add_argument("--discard", action="store_true", help="do not keep the evidence of violations")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
