"""The common command of all proofs: a run with injected faults, the checker's result, and where the evidence is."""

import argparse
import json
import random
import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from tests.guards import Mutation
from tests.judge_proof import Cases, prove, without
from tests.processes import terminable
from tests.servers import SERVERS, ServerFailed, ServerMissing

SHOWN = 5  # of the violations of one kind


@dataclass(frozen=True)
class Proof:
    """One proof.

    Attributes:
        module: that is run; ``about``: what --help says.
        plan: what is asked for; each of its fields is an option, ``database`` and ``seed`` among them.
        run: carries a plan out, in a folder for the evidence, and returns what the judge found.
        options: add the other options.
        databases: on which it can be run.
        cases: guards that are taken out to see that the judge objects; ``words``: how it is run then.
    """

    module: str
    about: str
    plan: Any
    run: Callable[[Any, Path], Any]
    options: Callable[[argparse.ArgumentParser], object]
    databases: Collection[str] = tuple(SERVERS)
    cases: Cases | None = None
    words: Sequence[str] = ()

    def main(self, words: Sequence[str]) -> int:
        """Do what these words say; return 1 when a promise was broken, or a guard was not missed."""
        known = {mutation.name: mutation for mutation in self.cases or {}}
        chosen = self._chosen(words, known)
        with terminable():
            try:
                if self.cases and chosen.prove is not None:
                    return prove(
                        self.module, self.cases, ["--database", chosen.database, *self.words], chosen.prove
                    )
                if self.cases and chosen.without:
                    rest = [word for word in words if word not in ("--without", chosen.without)]
                    return without(self.module, known[chosen.without], rest, is_shown=True).returncode
                return self._once(chosen)
            except (ServerMissing, ServerFailed) as problem:
                print(problem)
                return 2

    def _once(self, chosen: argparse.Namespace) -> int:
        plan = self.plan(**{field.name: getattr(chosen, field.name) for field in fields(self.plan)})
        print(f"{plan.database}, seed {plan.seed}", flush=True)
        folder = Path(tempfile.mkdtemp(prefix=f"resourcepool-{self.module.split('.')[-2]}-"))
        findings = self.run(plan, folder)
        show(findings)
        if findings.is_clean or chosen.discard:
            shutil.rmtree(folder)
        else:
            print(f"The evidence is in {folder}")
        if chosen.json:
            chosen.json.write_text(json.dumps(asdict(findings), indent=2) + "\n")
        return 0 if findings.is_clean else 1

    def _chosen(self, words: Sequence[str], known: Mapping[str, Mutation]) -> argparse.Namespace:
        parser = argparse.ArgumentParser(
            prog=f"python -m {self.module}",
            description=self.about,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument("--database", choices=self.databases, default="mariadb")
        self.options(parser)
        parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
        if known:
            parser.add_argument("--without", choices=known, metavar="GUARD", help="take a guard out first")
            about = "see that the judge objects; WORD: to these alone"
            parser.add_argument("--prove", nargs="*", metavar="WORD", help=about)
        parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
        parser.add_argument("--discard", action="store_true", help="do not keep the evidence of violations")
        return parser.parse_args(words)


def show(findings: Any) -> None:
    """Print what the judge found."""
    for name, value in findings.figures.items():
        print(f"  {name:<30}{value:,}")
    for kind, cases in findings.violations.items():
        if cases:
            print(f"\n{kind}: {len(cases)}", *(f"  {case}" for case in cases[:SHOWN]), sep="\n")
    print(f"\n{'nothing wrong' if findings.is_clean else 'VIOLATIONS'}", flush=True)
