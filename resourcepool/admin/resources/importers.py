"""What the import pages do with a file: proxies have an import of their own, all other resources a common one."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from resourcepool.encryption.field import EncryptedTextField
from resourcepool.events import localized
from resourcepool.exceptions import ImportRefused, ResourcePoolError
from resourcepool.proxies.formats import COLUMNS
from resourcepool.proxies.import_plan import ImportResult
from resourcepool.proxies.import_proxies import NOTES, BadLines, import_proxies, notes
from resourcepool.resources.import_rows import (
    CHANGED,
    NEW,
    UNCHANGED,
    WRONG,
    RowChange,
    apply_row_plan,
    import_columns,
    make_row_plan,
)
from resourcepool.translation import gettext as _, gettext_lazy, ngettext_lazy

MAX_ROWS_SHOWN = 500
UPDATE = gettext_lazy("Update existing rows with the values in the file")
SYNC = gettext_lazy("Sync: retire proxies that are not in the file, and return retired ones that are")
SKIP_BAD = gettext_lazy("Skip bad lines and import the others")
RETIRED = ngettext_lazy("%d is not in the file: retired.", "%d are not in the file: retired.")


@dataclass(kw_only=True)
class Outcome:
    """The plan or the result of an import.

    Attributes:
        sentences: the numbers of rows in words.
        rows: what happens with each row, the first ``MAX_ROWS_SHOWN``.
        bad: the first skipped lines, in words.
        is_refused: wrong rows prevent the import.
    """

    sentences: list[str]
    rows: Sequence[RowChange] = ()
    bad: Sequence[str] = ()
    is_refused: bool = False


class RowImporter:
    """Imports rows of any model of resources.

    Attributes:
        options: {name: label} of the choices.
        has_secrets: whether a file may contain secrets.
    """

    options: dict[str, Any] = {"update": UPDATE, "skip_bad": SKIP_BAD}

    def __init__(self, model: Any) -> None:
        self.model = model
        self.has_secrets = any(isinstance(one, EncryptedTextField) for one in model._meta.concrete_fields)

    @property
    def help(self) -> str:
        """What may be imported."""
        text = _("CSV with a header of some of these columns: %(columns)s. UTF-8, at most 1 MB.")
        return text % {"columns": ", ".join(import_columns(self.model))}

    def run(
        self, content: bytes, name: str, options: dict[str, bool], *, dry_run: bool, actor: str = ""
    ) -> Outcome:
        """Plan the import, or run it; raises ResourcePoolError."""
        try:
            text = content.decode()
        except UnicodeDecodeError:
            raise ImportRefused(_("not UTF-8 text; save the file as UTF-8")) from None
        plan = make_row_plan(self.model, text, update=options["update"])
        counts = plan.counts
        sentences = [
            _numbers(total=len(plan.rows), **{name: counts[name] for name in (NEW, CHANGED, UNCHANGED)})
        ]
        if counts[WRONG]:
            sentences.append(
                str(NOTES["bad_count"] % {"count": counts[WRONG], "shown": f"{counts[WRONG]:,}"})
                if options["skip_bad"]
                else _wrong(counts[WRONG])
            )
        is_refused = bool(counts[WRONG]) and not options["skip_bad"]
        if not dry_run and not is_refused:
            apply_row_plan(self.model, plan)
        return Outcome(sentences=sentences, rows=plan.rows[:MAX_ROWS_SHOWN], is_refused=is_refused)


class ProxyImporter(RowImporter):
    """Imports proxies as ``resourcepool_import`` does."""

    options = {"update": UPDATE, "sync": SYNC, "skip_bad": SKIP_BAD}

    @property
    def help(self) -> str:
        text = _(
            "UTF-8: CSV with a header (%(columns)s), or one address per line. At most 1 MB; for larger files use"
            " manage.py resourcepool_import."
        )
        return text % {"columns": ", ".join(COLUMNS)}

    def run(
        self, content: bytes, name: str, options: dict[str, bool], *, dry_run: bool, actor: str = ""
    ) -> Outcome:
        """Plan the import, or run it; raises ResourcePoolError."""
        arguments: dict[str, Any] = {
            **options,
            "dry_run": dry_run,
            "actor": actor,
            "stream": io.BytesIO(content),
        }
        result = import_proxies(name, **arguments, compare_passwords=False)
        return Outcome(
            sentences=sentences(result, sync=options["sync"]),
            rows=result.rows,
            bad=[localized(line) for line in result.bad],
        )


def _numbers(**counts: int) -> str:
    return _("%(total)d in the file: %(new)d new, %(changed)d changed, %(unchanged)d unchanged.") % counts


def _wrong(count: int) -> str:
    text = _("%d wrong: correct them, or skip them. Nothing can be imported yet.")
    return text % count


def error_lines(error: ResourcePoolError) -> list[str]:
    """Return the messages of ``error``, one per bad line."""
    if isinstance(error, BadLines):
        more = error.bad_count - len(error.bad)
        lines = [localized(line) for line in error.bad]
        return [*lines, _("and %d more bad lines") % more] if more > 0 else lines
    return [localized(error)]


def sentences(result: ImportResult, *, sync: bool) -> list[str]:
    """Return the result or plan of an import of proxies in sentences."""
    counts = {name: getattr(result, name) for name in ("total", "new", "changed", "unchanged")}
    retired = [str(RETIRED % result.retired)] if result.retired else []
    return [_numbers(**counts), *retired, *notes(result, sync=sync)]
