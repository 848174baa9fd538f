"""``manage.py resourcepool_check``: checks whether resources are usable."""

from typing import Any

from django.core.management.base import CommandError

from resourcepool.conf import setting
from resourcepool.documentation import documented
from resourcepool.events import localized
from resourcepool.exceptions import BadOption, CheckerBroken, Hidden
from resourcepool.health_checks.check import CheckAction, CheckOptions, CheckResult, Tally, check
from resourcepool.health_checks.checker import no_checker
from resourcepool.management.arguments import Argument, arg, flag
from resourcepool.management.base import OperatorCommand, actor
from resourcepool.management.layout import one_line
from resourcepool.resources.registry import resource_model, select_resources
from resourcepool.resources.selectors import parse_key
from resourcepool.resources.state import Verdict
from resourcepool.sweeps.sweep import check_pool
from resourcepool.translation import gettext, gettext as _, gettext_lazy

BROKEN = 2  # exit code
BUSY = 3


class Command(OperatorCommand):
    about = gettext_lazy(
        "Checks resources that are not leased, by the settings in RESOURCEPOOL['CHECKS'], and prints one"
        " line for each. Bad ones are quarantined; good ones that an earlier check had quarantined return"
        " to service. If many fail together, the checker is assumed to be broken and nothing is changed."
    )
    exit_codes = gettext_lazy(
        "Exit codes: 0 none is bad; 1 at least one is bad, or refused; 2 checker seems broken, or usage"
        " error; 3 running in another process; 130 interrupted."
    )
    example = (
        "manage.py resourcepool_check\n"
        "manage.py resourcepool_check proxy 17 18 --dry-run\n"
        "manage.py resourcepool_check proxy --json"
    )

    interrupted = gettext_lazy("finished checks were saved; the other resources were released unchanged")
    any_quarantine = False  # end only quarantines set by a check
    bad_is_error = True

    def arguments(self) -> list[Argument]:
        pool = _("only this pool (app.Model, or Model); default: all pools with a checker")
        believe = _("apply the results even if most checks fail at once")
        return [
            arg("pool", pool, nargs="?"),
            arg("id", _("primary keys; default: all resources that are not leased"), nargs="*"),
            flag("--dry-run", _("check, but change nothing")),
            flag("--believe", believe),
            flag("--json", _("print one JSON object per line")),
        ]

    def run(self, **options: Any) -> None:
        self.bad = self.broken = 0
        flags = {name: options[name] for name in ("dry_run", "believe")}
        check_options = CheckOptions(any_quarantine=self.any_quarantine, actor=actor(), **flags)
        for model in _models(options["pool"]):
            try:
                self._check(model, check_options, options["id"])
            except CheckerBroken as error:
                self.broken += 1
                self.stderr.write(f"{model._meta.label}: {localized(error)}.")
        if self.broken:
            text = _("the checker or its target seems broken; if not, use --believe (%(page)s)")
            message = text % {"page": documented("how-to/health-checks", "when-many-fail-together")}
            raise CommandError(message, returncode=BROKEN)
        if self.bad and self.bad_is_error:
            raise SystemExit(1)

    def _check(self, model: Any, check_options: CheckOptions, ids: list[str]) -> None:
        def on_result(checked: CheckResult) -> None:
            self.bad += checked.verdict == "bad"
            data = {name: getattr(checked, name) for name in ("name", "verdict", "seconds", "why", "done")}
            self.show({"pool": model._meta.label, "id": str(checked.pk), **data}, [_as_text(checked)])

        if ids or check_options.dry_run:
            tally = Tally(on_result)
            pks = [parse_key(model, pk) for pk in ids]
            select_resources(model, ids)  # raises BadOption for unknown ids
            check(model, pks or None, options=check_options, on_result=tally)
            result: str | None = str(tally)
        else:
            result = check_pool(model, check_options, on_result)
        if result is None:
            message = _("%s is being checked by another process") % model._meta.label
            raise CommandError(message, returncode=BUSY)
        if not self.as_json:
            self.stdout.write(f"{model._meta.label}: {localized(result)}.")


def _models(label: str | None) -> list[Any]:
    """Return the model of this pool, or all models with a checker; raises BadOption."""
    labels = [label] if label else sorted(setting("CHECKS"))
    if not labels:
        raise BadOption("RESOURCEPOOL['CHECKS']", Hidden(), because=no_checker())
    return [resource_model(name) for name in labels]


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
