"""Servers share queues while others start, stop and fail; exit code 1 when a promise was broken.

See docs/internals/reliability.md.

python -m tests.queues.proof                                   one of everything on MariaDB, half a minute
python -m tests.queues.proof --minutes 5 --database postgresql
python -m tests.queues.proof --without "the end of trust"      with one guard removed: the judge must object
python -m tests.queues.proof --prove                           every guard, one after the other
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
from tests.queues.proof.judge import BY_THE_CLOCK, Findings
from tests.queues.proof.prove import KNOWN, prove, without
from tests.queues.proof.run import Plan, run
from tests.servers import SERVERS, ServerFailed, ServerMissing

SHOWN = 5  # violations per kind


def main(words: Sequence[str]) -> int:
    chosen = _arguments(words)
    with terminable():
        try:
            if chosen.prove:
                return prove(chosen.database)
            if chosen.without:
                rest = [word for word in words if word not in ("--without", chosen.without)]
                return without(KNOWN[chosen.without], rest, is_shown=True).returncode
            return _once(chosen)
        except (ServerMissing, ServerFailed) as problem:
            print(problem)
            return 2


def _once(chosen: argparse.Namespace) -> int:
    plan = Plan(chosen.database, chosen.minutes * 60, chosen.seed)
    print(f"{plan.database}, seed {plan.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="resourcepool-queues-"))
    findings, let_pass = None, BY_THE_CLOCK if chosen.at_any_speed else ()
    try:
        findings = run(plan, folder)
    finally:
        if chosen.discard or findings is None or findings.is_clean(but=let_pass):
            shutil.rmtree(folder)
        else:
            print(f"The evidence is in {folder}")
    is_clean = findings.is_clean(but=let_pass)
    _show(findings, is_clean)
    if chosen.json:
        chosen.json.write_text(json.dumps(asdict(findings), indent=2) + "\n")
    return 0 if is_clean else 1


def _show(findings: Findings, is_clean: bool) -> None:
    print()
    for name, value in findings.figures.items():
        print(f"  {name:<52}{value:,}" if isinstance(value, int) else f"  {name:<52}{value}")
    for kind, cases in findings.violations.items():
        if cases:
            print(f"\n{kind}: {len(cases)}")
            for case in cases[:SHOWN]:
                print(f"  {case}")
    print(f"\n{'nothing wrong' if is_clean else 'VIOLATIONS'}", flush=True)


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.queues.proof",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=0, help="how long; default: one of everything")
    parser.add_argument("--database", choices=[*SERVERS, "sqlite"], default="mariadb")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--without", choices=KNOWN, metavar="GUARD", help="take a guard out first")
    parser.add_argument("--prove", action="store_true", help="see that the judge objects")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
    parser.add_argument(
        "--at-any-speed", action="store_true", help="let pass what a busy machine may be late with"
    )
    parser.add_argument("--discard", action="store_true", help="do not keep the evidence of violations")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
