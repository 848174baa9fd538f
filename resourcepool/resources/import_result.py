"""What an import does or did with each row, in numbers and in words."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from resourcepool.events import Sentence
from resourcepool.exceptions import ImportRefused
from resourcepool.resources.import_file import BadLine
from resourcepool.translation import gettext, gettext_lazy, gettext_noop as _, ngettext_lazy

NEW, CHANGED, UNCHANGED, WRONG = "new", "changed", "unchanged", "wrong"
LABELS = {
    NEW: gettext_lazy("new"),
    CHANGED: gettext_lazy("changed"),
    UNCHANGED: gettext_lazy("unchanged"),
    WRONG: gettext_lazy("wrong"),
}
MAX_ROWS_SHOWN = 500
SET = "***"  # instead of a secret

# {attribute of ``ImportResult``: the sentence about it}
NOTES = {
    "returned": ngettext_lazy(
        "%(shown)s changed row returns to service.", "%(shown)s changed rows return to service.", "count"
    ),
    "differing": ngettext_lazy(
        '%(shown)s existing row differs from the file and is left unchanged; "update" takes its values.',
        '%(shown)s existing rows differ from the file and are left unchanged; "update" takes its values.',
        "count",
    ),
    "uncompared": ngettext_lazy(
        "%(shown)s unchanged row has a secret in the file; it is not compared with the stored one.",
        "%(shown)s unchanged rows have secrets in the file; they are not compared with the stored ones.",
        "count",
    ),
    "staying_retired": ngettext_lazy(
        '%(shown)s is still retired; "sync" returns it to service.',
        '%(shown)s are still retired; "sync" returns them to service.',
        "count",
    ),
    "repeated": ngettext_lazy(
        "%(shown)s line is an exact duplicate.", "%(shown)s lines are exact duplicates.", "count"
    ),
    "bad_count": ngettext_lazy("%(shown)s bad line skipped.", "%(shown)s bad lines skipped.", "count"),
}


class Change(NamedTuple):
    """A column of a row; secrets are shown as ``SET``."""

    field: str
    old: str
    new: str


class RowChange(NamedTuple):
    """What the import does with one row of the file; ``what``: a key of ``LABELS``."""

    line: int
    what: str
    name: str
    changes: tuple[Change, ...] = ()
    note: str = ""

    @property
    def label(self) -> str:
        """``what``, for people."""
        return str(LABELS[self.what])


@dataclass(kw_only=True)
class ImportResult:
    """The result of an import, or of a dry run.

    Attributes:
        new, changed, unchanged: numbers of rows in the file; together all good lines.
        returned: changed rows that were retired and returned to service.
        retired: rows that are not in the file and were retired.
        differing: unchanged rows that have other values in the file.
        uncompared: unchanged rows whose secrets in the file were not compared with the stored ones.
        staying_retired: rows in the file that stay retired.
        repeated: lines that are exact copies of an earlier one.
        bad, bad_count: the first skipped lines, and their number.
        rows: what happens with each row, the first ``MAX_ROWS_SHOWN``; without secrets.
    """

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    returned: int = 0
    retired: int = 0
    differing: int = 0
    uncompared: int = 0
    staying_retired: int = 0
    repeated: int = 0
    bad: Sequence[BadLine] = ()
    bad_count: int = 0
    rows: list[RowChange] = field(default_factory=list)

    @property
    def total(self) -> int:
        """The number of good rows in the file."""
        return self.new + self.changed + self.unchanged


class BadLines(ImportRefused):
    """The file has bad lines; ``bad`` are the first ones, ``bad_count`` is their number."""

    def __init__(self, bad: Sequence[BadLine], bad_count: int) -> None:
        self.bad, self.bad_count = bad, bad_count
        text = _("nothing was imported; bad lines: %(count)s\n%(lines)s")
        super().__init__(Sentence(text, count=f"{bad_count:,}", lines=format_bad_lines(bad, bad_count)))


def format_bad_lines(bad: Sequence[BadLine], count: int) -> Sentence:
    """Return the bad lines for people, one per line, and the number of others."""
    more = [Sentence(_("and %(count)s more"), count=f"{count - len(bad):,}")] if count > len(bad) else []
    return Sentence("%(lines)s", lines=(*map(str, bad), *more))


def sentences(model: Any, result: ImportResult, *, dry_run: bool, sync: bool) -> list[str]:
    """Return the result of an import of rows of ``model``, or of a dry run, in words."""
    names = ("new", "changed", "unchanged", "retired")
    counts = {name: f"{getattr(result, name):,}" for name in names}
    nouns = model._meta.verbose_name if result.total == 1 else model._meta.verbose_name_plural
    what = gettext("%(count)s %(noun)s") % {"count": f"{result.total:,}", "noun": nouns}
    text = (
        gettext("Would import %(what)s: %(counts)s.") if dry_run else gettext("Imported %(what)s: %(counts)s.")
    )
    numbers = gettext("%(new)s new, %(changed)s changed, %(unchanged)s unchanged, %(retired)s retired")
    found = [text % {"what": what, "counts": numbers % counts}]
    for name, note in NOTES.items():
        if count := getattr(result, name):
            found.append(str(note % {"count": count, "shown": f"{count:,}"}))
    if sync and result.bad:
        found.append(gettext("Nothing is retired, because lines were skipped."))
    return found
