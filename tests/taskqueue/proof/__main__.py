"""Consumers of a stream under misfortunes; exit code 1 when a promise was broken (docs/streams.md).

python -m tests.taskqueue.proof                                 2,000 tasks on MariaDB
python -m tests.taskqueue.proof --tasks 10000 --lanes 4 --database postgresql
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
from tests.taskqueue.proof.judge import Findings
from tests.taskqueue.proof.run import Plan, run

SHOWN = 5  # of the violations of one kind


def main(words: Sequence[str]) -> int:
    chosen = _arguments(words)
    plan = Plan(chosen.database, chosen.tasks, chosen.lanes, chosen.every, chosen.seed)
    print(f"{plan.database}, seed {plan.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="resourcepool-streams-"))
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


def _show(findings: Findings) -> None:
    for name, value in findings.figures.items():
        print(f"  {name:<30}{value:,}")
    for kind, cases in findings.violations.items():
        if cases:
            print(f"\n{kind}: {len(cases)}", *(f"  {case}" for case in cases[:SHOWN]), sep="\n")
    print(f"\n{'nothing wrong' if findings.is_clean else 'VIOLATIONS'}", flush=True)


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.taskqueue.proof",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--database", choices=SERVERS, default="mariadb")
    parser.add_argument("--tasks", type=int, default=2_000)
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--every", type=float, default=3.0, metavar="SECONDS", help="between two misfortunes")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
    parser.add_argument("--discard", action="store_true", help="do not keep the evidence of violations")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
