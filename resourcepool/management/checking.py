"""What ``resourcepool_check`` and ``resourcepool_fix`` have in common."""

import json
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.translation import gettext, gettext_lazy
from django.utils.translation import gettext as _

from resourcepool.conf import setting
from resourcepool.events import shown
from resourcepool.exceptions import BadOption, CheckerBroken, Hidden
from resourcepool.management.base import OperatorCommand, actor
from resourcepool.management.layout import plain
from resourcepool.resources.registry import chosen, key, resource_model
from resourcepool.resources.state import Verdict
from resourcepool.sweeps.validity import check_pool
from resourcepool.validity.check import Wishes, check
from resourcepool.validity.outcome import Checked, Done, Tally

BROKEN = 2  # exit code
ELSEWHERE = 3


class CheckingCommand(OperatorCommand):
    """A command that checks resources and prints a line for each."""

    interrupted = gettext_lazy("what was checked so far is done; everything else was given back as it was")
    every_quarantine = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "pool",
            nargs="?",
            help=_("only this pool (app.Model, or Model); if not given: all that have a checker"),
        )
        parser.add_argument("id", nargs="*", help=_("primary keys; if not given: all that nobody holds"))
        parser.add_argument("--dry-run", action="store_true", help=_("look, but change nothing"))
        parser.add_argument(
            "--believe",
            action="store_true",
            help=_("act also when so many fail that the checker may be to blame"),
        )
        parser.add_argument("--json", action="store_true", help=_("print one JSON object a line"))

    def run(self, **options: Any) -> None:
        """See ``OperatorCommand``."""
        self.bad = self.broken = 0
        wishes = Wishes(
            dry_run=options["dry_run"],
            every_quarantine=self.every_quarantine,
            believe=options["believe"],
            actor=actor(),
        )
        for model in _models(options["pool"]):
            try:
                self._check(model, wishes, options["id"], as_json=options["json"])
            except CheckerBroken as error:
                self.broken += 1
                self.stderr.write(f"{model._meta.label}: {shown(error)}.")
        if self.broken:
            told = _("the checker or its target seems broken; if it is not: --believe (docs/validity.md)")
            raise CommandError(told, returncode=BROKEN)

    def _check(self, model: Any, wishes: Wishes, ids: list[str], *, as_json: bool) -> None:
        def tell(checked: Checked) -> None:
            self.bad += checked.verdict == "bad"
            self.stdout.write(_as_json(model, checked) if as_json else _as_text(checked))

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
        if not as_json:
            self.stdout.write(f"{model._meta.label}: {shown(result)}.")


def _models(label: str | None) -> list[Any]:
    """Return the model of this pool, or all that have a checker; raises BadOption."""
    labels = [label] if label else sorted(setting("CHECKS"))
    if not labels:
        raise BadOption(
            "RESOURCEPOOL['CHECKS']",
            Hidden(),
            because=_("nothing says how to check them; see docs/validity.md"),
        )
    return [resource_model(one) for one in labels]


def _as_text(checked: Checked) -> str:
    verdict = "-" if checked.verdict is None else str(Verdict(checked.verdict).label)
    parts = [f"{verdict:<8}", plain(checked.pk), plain(checked.name)]
    if checked.seconds is not None:
        parts.append(f"{checked.seconds:.2f} s")
    if checked.why:
        parts.append(plain(shown(checked.why), 150))
    line, done = "  ".join(parts), str(checked.done)
    return (
        f"{line} -> {gettext(done)}" if checked.done in (Done.QUARANTINED, Done.RETURNED, Done.LOST) else line
    )


def _as_json(model: Any, checked: Checked) -> str:
    shown = {
        "pool": model._meta.label,
        "id": str(checked.pk),
        "name": checked.name,
        "verdict": checked.verdict and str(checked.verdict),
        "seconds": checked.seconds,
        "why": checked.why,
        "done": str(checked.done),
    }
    return json.dumps(shown)
