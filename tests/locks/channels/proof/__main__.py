"""Processes that publish, read and listen, killed and stopped every so often, their database restarted.

python -m tests.locks.channels.proof             20,000 messages on MariaDB; exit code 1: a promise was broken
python -m tests.locks.channels.proof --messages 600 --every 0.7 --database postgresql
python -m tests.locks.channels.proof --prove     guards are taken out, one after the other: the judge must object
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

from tests.locks.channels.proof.prove import CASES, KNOWN, WORDS
from tests.locks.channels.proof.run import Plan, run
from tests.processes import terminable
from tests.proving import prove, without
from tests.servers import SERVERS, ServerFailed, ServerMissing
from tests.taskqueue.proof.__main__ import _show

PROOF = "tests.locks.channels.proof"


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
    plan = Plan(chosen.database, chosen.messages, chosen.every, chosen.seed)
    print(f"{plan.database}, seed {plan.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="resourcepool-channels-"))
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
    parser.add_argument("--database", choices=SERVERS, default="mariadb")
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--every", type=float, default=2.0, metavar="SECONDS", help="between two misfortunes")
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
