"""``manage.py resourcepool_check``: are the resources still usable?"""

from typing import Any

from django.core.management.base import CommandError
from django.utils.translation import gettext, gettext_lazy
from django.utils.translation import gettext as _

from resourcepool.conf import setting
from resourcepool.events import localized
from resourcepool.exceptions import BadOption, CheckerBroken, Hidden
from resourcepool.health_checks.check import CheckOptions, check
from resourcepool.health_checks.results import CheckAction, CheckResult, Tally
from resourcepool.management.arguments import Argument, arg, flag
from resourcepool.management.base import OperatorCommand, actor
from resourcepool.management.layout import one_line
from resourcepool.resources.registry import parse_key, resource_model, select_resources
from resourcepool.resources.state import Verdict
from resourcepool.sweeps.health_checks import check_pool

BROKEN = 2  # exit code
ELSEWHERE = 3


class Command(OperatorCommand):
    about = gettext_lazy(
        "Checks resources that nobody holds, as RESOURCEPOOL['CHECKS'] says, and prints a line for each. Those found"
        " bad are put in quarantine, those that an earlier check had put there are returned if they are good. If many"
        " fail together, the checker is blamed and nothing is changed."
    )
    exit_codes = gettext_lazy(
        "Exit codes: 0 none is bad; 1 at least one is bad, or refused; 2 the checker seems broken, or not understood;"
        " 3 being done elsewhere; 130 interrupted."
    )
    example = (
        "manage.py resourcepool_check\n"
        "manage.py resourcepool_check proxy 17 18 --dry-run\n"
        "manage.py resourcepool_check proxy --json"
    )

    interrupted = gettext_lazy("what was checked so far is done; everything else was given back as it was")
    any_quarantine = False  # return what is good, whoever has put it there
    bad_is_error = True

    def arguments(self) -> list[Argument]:
        pool = _("only this pool (app.Model, or Model); if not given: all that have a checker")
        believe = _("act also when so many fail that the checker may be to blame")
        return [
            arg("pool", pool, nargs="?"),
            arg("id", _("primary keys; if not given: all that nobody holds"), nargs="*"),
            flag("--dry-run", _("look, but change nothing")),
            flag("--believe", believe),
            flag("--json", _("print one JSON object a line")),
        ]

    def run(self, **options: Any) -> None:
        self.bad = self.broken = 0
        chosen = {name: options[name] for name in ("dry_run", "believe")}
        check_options = CheckOptions(any_quarantine=self.any_quarantine, actor=actor(), **chosen)
        for model in _models(options["pool"]):
            try:
                self._check(model, check_options, options["id"])
            except CheckerBroken as error:
                self.broken += 1
                self.stderr.write(f"{model._meta.label}: {localized(error)}.")
        if self.broken:
            told = _("the checker or its target seems broken; if it is not: --believe (docs/health-checks.md)")
            raise CommandError(told, returncode=BROKEN)
        if self.bad and self.bad_is_error:
            raise SystemExit(1)

    def _check(self, model: Any, check_options: CheckOptions, ids: list[str]) -> None:
        def on_result(checked: CheckResult) -> None:
            self.bad += checked.verdict == "bad"
            data = {name: getattr(checked, name) for name in ("name", "verdict", "seconds", "why", "done")}
            self.show({"pool": model._meta.label, "id": str(checked.pk), **data}, [_as_text(checked)])

        if ids or check_options.dry_run:
            tally = Tally(on_result)
            pks = [parse_key(model, one) for one in ids]
            select_resources(model, ids)  # refuses what is not there
            check(model, pks or None, options=check_options, on_result=tally)
            result: str | None = str(tally)
        else:
            result = check_pool(model, check_options, on_result)
        if result is None:
            where = _("%s is being checked elsewhere just now") % model._meta.label
            raise CommandError(where, returncode=ELSEWHERE)
        if not self.as_json:
            self.stdout.write(f"{model._meta.label}: {localized(result)}.")


def _models(label: str | None) -> list[Any]:
    """Return the model of this pool, or all that have a checker; raises BadOption."""
    labels = [label] if label else sorted(setting("CHECKS"))
    if not labels:
        why = _("nothing says how to check them; see docs/health-checks.md")
        raise BadOption("RESOURCEPOOL['CHECKS']", Hidden(), because=why)
    return [resource_model(one) for one in labels]


def _as_text(checked: CheckResult) -> str:
    verdict = "-" if checked.verdict is None else str(Verdict(checked.verdict).label)
    parts = [f"{verdict:<8}", one_line(checked.pk), one_line(checked.name)]
    if checked.seconds is not None:
        parts.append(f"{checked.seconds:.2f} s")
    if checked.why:
        parts.append(one_line(localized(checked.why), 150))
    if checked.done in (CheckAction.QUARANTINED, CheckAction.RETURNED, CheckAction.LOST):
        parts[-1] += " -> " + gettext(str(checked.done))
    return "  ".join(parts)
