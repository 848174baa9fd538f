"""``manage.py resourcepool_check``: are the resources still usable?"""

from typing import Any

from django.core.management.base import CommandError
from django.utils.translation import gettext, gettext_lazy
from django.utils.translation import gettext as _

from resourcepool.conf import setting
from resourcepool.events import shown
from resourcepool.exceptions import BadOption, CheckerBroken, Hidden
from resourcepool.management.arguments import Argument, arg, flag
from resourcepool.management.base import OperatorCommand, actor
from resourcepool.management.layout import plain
from resourcepool.resources.registry import chosen, key, resource_model
from resourcepool.resources.state import Verdict
from resourcepool.sweeps.validity import check_pool
from resourcepool.validity.check import Wishes, check
from resourcepool.validity.outcome import Checked, Done, Tally

BROKEN = 2  # exit code
ELSEWHERE = 3


class Command(OperatorCommand):
    about = gettext_lazy(
        "Checks resources that nobody holds, as RESOURCEPOOL['CHECKS'] says, and prints a line for each. Those found"
        " bad are put in quarantine, those that an earlier check had put there are returned if they are good. If many"
        " fail together, the checker is blamed and nothing is changed."
    )
    codes = gettext_lazy(
        "Exit codes: 0 none is bad; 1 at least one is bad, or refused; 2 the checker seems broken, or not understood;"
        " 3 being done elsewhere; 130 interrupted."
    )
    example = (
        "manage.py resourcepool_check\n"
        "manage.py resourcepool_check proxy 17 18 --dry-run\n"
        "manage.py resourcepool_check proxy --json"
    )

    interrupted = gettext_lazy("what was checked so far is done; everything else was given back as it was")
    every_quarantine = False  # return what is good, whoever has put it there
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
        wishes = Wishes(every_quarantine=self.every_quarantine, actor=actor(), **chosen)
        for model in _models(options["pool"]):
            try:
                self._check(model, wishes, options["id"])
            except CheckerBroken as error:
                self.broken += 1
                self.stderr.write(f"{model._meta.label}: {shown(error)}.")
        if self.broken:
            told = _("the checker or its target seems broken; if it is not: --believe (docs/validity.md)")
            raise CommandError(told, returncode=BROKEN)
        if self.bad and self.bad_is_error:
            raise SystemExit(1)

    def _check(self, model: Any, wishes: Wishes, ids: list[str]) -> None:
        def tell(checked: Checked) -> None:
            self.bad += checked.verdict == "bad"
            data = {name: getattr(checked, name) for name in ("name", "verdict", "seconds", "why", "done")}
            self.show({"pool": model._meta.label, "id": str(checked.pk), **data}, [_as_text(checked)])

        if ids or wishes.dry_run:
            tally = Tally(tell)
            pks = [key(model, one) for one in ids]
            chosen(model, ids)  # refuses what is not there
            check(model, pks or None, wishes=wishes, tell=tally)
            result: str | None = str(tally)
        else:
            result = check_pool(model, wishes, tell)
        if result is None:
            where = _("%s is being checked elsewhere just now") % model._meta.label
            raise CommandError(where, returncode=ELSEWHERE)
        if not self.as_json:
            self.stdout.write(f"{model._meta.label}: {shown(result)}.")


def _models(label: str | None) -> list[Any]:
    """Return the model of this pool, or all that have a checker; raises BadOption."""
    labels = [label] if label else sorted(setting("CHECKS"))
    if not labels:
        why = _("nothing says how to check them; see docs/validity.md")
        raise BadOption("RESOURCEPOOL['CHECKS']", Hidden(), because=why)
    return [resource_model(one) for one in labels]


def _as_text(checked: Checked) -> str:
    verdict = "-" if checked.verdict is None else str(Verdict(checked.verdict).label)
    parts = [f"{verdict:<8}", plain(checked.pk), plain(checked.name)]
    if checked.seconds is not None:
        parts.append(f"{checked.seconds:.2f} s")
    if checked.why:
        parts.append(plain(shown(checked.why), 150))
    if checked.done in (Done.QUARANTINED, Done.RETURNED, Done.LOST):
        parts[-1] += " -> " + gettext(str(checked.done))
    return "  ".join(parts)
