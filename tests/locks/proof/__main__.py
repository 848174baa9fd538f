"""Workers that use locks of every kind under misfortunes; exit code 1: a promise was broken.

python -m tests.locks.proof                                      for a minute on MariaDB
python -m tests.locks.proof --seconds 300 --database postgresql
python -m tests.locks.proof --without "semaphores: all or none"  a guard taken out: the judge must object
python -m tests.locks.proof --prove                              every guard, one after the other (--prove WORD: some)
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

from tests.locks.proof.prove import CASES, KNOWN, WORDS
from tests.locks.proof.run import Plan, run
from tests.processes import terminable
from tests.proving import prove, without
from tests.servers import SERVERS, ServerFailed, ServerMissing
from tests.taskqueue.proof.__main__ import _show

PROOF = "tests.locks.proof"


def main(words: Sequence[str]) -> int:
    chosen = _arguments(words)
    with terminable():
        try:
            if chosen.prove is not None:
                return prove(PROOF, CASES, ["--database", chosen.database, *WORDS], chosen.prove)
            if chosen.without:
                rest = [word for word in words if word not in ("--without", chosen.without)]
                return without(PROOF, KNOWN[chosen.without], rest, is_shown=True).returncode
            return _once(chosen)
        except (ServerMissing, ServerFailed) as problem:
            print(problem)
            return 2


def _once(chosen: argparse.Namespace) -> int:
    plan = Plan(chosen.database, chosen.seconds, chosen.every, chosen.seed)
    print(f"{plan.database}, seed {plan.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="resourcepool-locks-"))
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
    parser.add_argument("--seconds", type=float, default=60.0, metavar="SECONDS", help="how long")
    parser.add_argument("--every", type=float, default=1.0, metavar="SECONDS", help="between two misfortunes")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--without", choices=KNOWN, metavar="GUARD", help="take a guard out first")
    parser.add_argument(
        "--prove", nargs="*", metavar="WORD", help="see that the judge objects; WORD: to these alone"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
    parser.add_argument("--discard", action="store_true", help="do not keep the evidence of violations")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
