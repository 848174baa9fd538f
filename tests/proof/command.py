"""The command of every proof: a run with injected faults, the result of the checker, and where the evidence is."""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.processes import terminable
from tests.proof.cases import Case, prove, without
from tests.proof.findings import show
from tests.proof.plan import Plan
from tests.proof.run import run
from tests.servers import SERVERS, ServerFailed, ServerMissing


@dataclass(frozen=True)
class Proof:
    """One proof.

    Attributes:
        module: the package that is run, which has a module ``model``.
        about: what --help says.
        plan: what is asked for.
        databases: on which it can be run.
        cases: guards that are removed to see that the checker objects; ``words``: how it is run then.
    """

    module: str
    about: str | None
    plan: type[Plan]
    databases: Collection[str] = tuple(SERVERS)
    cases: Sequence[Case] = ()
    words: Sequence[str] = ()

    def main(self, words: Sequence[str]) -> int:
        """Do what these words say; return 1 when a promise was broken, or a removed guard went unnoticed."""
        known = {case.name: case for case in self.cases}
        chosen = self._chosen(words, known)
        with terminable():
            try:
                if self.cases and chosen.prove is not None:
                    how = ["--database", chosen.database, *self.words]
                    return prove(self.module, self._provable(chosen.database), how, chosen.prove)
                if self.cases and chosen.without:
                    rest = [word for word in words if word not in ("--without", chosen.without)]
                    return without(self.module, known[chosen.without], rest, is_shown=True).returncode
                return self._once(chosen)
            except (ServerMissing, ServerFailed) as problem:
                print(problem)
                return 2
            except KeyboardInterrupt:
                print("\nStopped.")
                return 130

    def _provable(self, database: str) -> list[Case]:
        return [case for case in self.cases if database in (case.databases or self.databases)]

    def _once(self, chosen: argparse.Namespace) -> int:
        plan = self.plan.of(chosen)
        print(f"{plan.database}, seed {plan.seed}", flush=True)
        folder, is_kept = Path(tempfile.mkdtemp(prefix="resourcepool-proof-")), False
        try:
            findings = run(f"{self.module}.model", plan, folder)
            show(findings)
            if chosen.json:
                chosen.json.write_text(json.dumps({"plan": asdict(plan), **asdict(findings)}, indent=2) + "\n")
            is_kept = not (findings.is_clean or chosen.discard)
        finally:
            if not is_kept:
                shutil.rmtree(folder)
        if is_kept:
            print(f"The evidence is in {folder}")
        return 0 if findings.is_clean else 1

    def _chosen(self, words: Sequence[str], known: Collection[str]) -> argparse.Namespace:
        parser = argparse.ArgumentParser(
            prog=f"python -m {self.module}",
            description=self.about,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument("--database", choices=self.databases, default="mariadb")
        self.plan.add_options(parser)
        if known:
            parser.add_argument("--without", choices=known, metavar="GUARD", help="remove a guard first")
            about = "see that the checker objects; WORD: to these alone"
            parser.add_argument("--prove", nargs="*", metavar="WORD", help=about)
        parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
        parser.add_argument("--discard", action="store_true", help="do not keep the evidence of violations")
        return parser.parse_args(words)

    def run_as_script(self) -> None:
        sys.exit(self.main(sys.argv[1:]))
