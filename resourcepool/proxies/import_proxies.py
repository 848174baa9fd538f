"""Imports proxies from a file, for the command, the admin and programs."""

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from django.db import connections

from resourcepool.db.retry import retrying
from resourcepool.encryption.secret import clear_frame_variables
from resourcepool.events import Sentence, sentence_for
from resourcepool.exceptions import ImportRefused
from resourcepool.proxies.import_file import (
    BadLine,
    ParsedFile,
    ProgressCallback,
    display_name,
    no_progress,
    read,
    read_lines,
)
from resourcepool.proxies.import_plan import ImportResult, apply_plan, make_plan
from resourcepool.proxies.models import Proxy
from resourcepool.translation import gettext, gettext_noop as _, ngettext, ngettext_lazy

# {attribute of ``ImportResult``: the sentence about it}
NOTES = {
    "returned": ngettext_lazy(
        "%(shown)s changed proxy returns to service.",
        "%(shown)s changed proxies return to service.",
        "count",
    ),
    "differing": ngettext_lazy(
        '%(shown)s existing proxy differs from the file and is left unchanged; "update" takes its values.',
        '%(shown)s existing proxies differ from the file and are left unchanged; "update" takes its values.',
        "count",
    ),
    "uncompared": ngettext_lazy(
        "%(shown)s unchanged proxy has a password in the file; it is not compared with the stored one.",
        "%(shown)s unchanged proxies have passwords in the file; they are not compared with the stored ones.",
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


class BadLines(ImportRefused):
    """The file has bad lines; ``bad`` are the first ones, ``bad_count`` is their number."""

    def __init__(self, reading: ParsedFile) -> None:
        self.bad, self.bad_count = reading.bad, reading.bad_count
        text = _("nothing was imported; bad lines: %(count)s\n%(lines)s")
        super().__init__(
            Sentence(text, count=f"{self.bad_count:,}", lines=format_bad_lines(self.bad, self.bad_count))
        )


@clear_frame_variables()
def import_proxies(
    name: str,
    *,
    update: bool = False,
    sync: bool = False,
    skip_bad: bool = False,
    dry_run: bool = False,
    progress: ProgressCallback = no_progress,
    stream: BinaryIO | None = None,
    actor: str = "",
    compare_passwords: bool = True,
) -> ImportResult:
    """Import the file ``name`` ("-": standard input) in one transaction; return the result.

    Args:
        update: update existing proxies from the columns in the file. An empty password keeps the stored one.
        sync: retire proxies that are not in the file (held ones after their lease), and return retired ones in it to
            service. Retires nothing if lines are skipped.
        skip_bad: skip bad lines and import the rest.
        dry_run: only compute the result.
        progress: called with the progress, see ``ProgressCallback``.
        stream: the source of the bytes, instead of the file of this name.
        actor: the operator, for the history of retired and returned proxies.
        compare_passwords: False for users who may not see stored passwords; see ``make_plan``.

    Raises:
        BadLines: the file has bad lines; nothing was imported.
        ImportRefused: the file cannot be used; nothing was imported.
        DatabaseUnavailable, NotMigrated, SecretUnreadable: nothing was imported.
    """
    using = Proxy.pool.using
    try:
        reading = read(read_lines(name, stream), progress)
        if reading.is_stopped or (reading.bad and not (skip_bad and reading.rows)):
            raise BadLines(reading)
    except ImportRefused as error:
        error.args = (sentence_for("about", name=display_name(name), why=str(error)),)
        raise
    options = {"update": update, "sync": sync, "compare_passwords": compare_passwords}
    plan = retrying(connections[using], lambda: make_plan(reading, using, progress=progress, **options))
    if not dry_run:
        plan.counts.retired = apply_plan(
            plan, using, sentence_for("not_in_file", file=Path(display_name(name)).name), progress, actor
        )
    return plan.counts


def format_bad_lines(bad: Sequence[BadLine], count: int) -> Sentence:
    """Return the bad lines for people, one per line, and the number of others."""
    more = [Sentence(_("and %(count)s more"), count=f"{count - len(bad):,}")] if count > len(bad) else []
    return Sentence("%(lines)s", lines=(*map(str, bad), *more))


def summary(result: ImportResult, *, dry_run: bool) -> str:
    """Return the numbers of an import, or of a dry run, in a sentence."""
    counts = {
        name: f"{getattr(result, name):,}" for name in ("total", "new", "changed", "unchanged", "retired")
    }
    if dry_run:
        text = ngettext(
            "Would import %(total)s proxy: %(what)s.", "Would import %(total)s proxies: %(what)s.", result.total
        )
    else:
        text = ngettext(
            "Imported %(total)s proxy: %(what)s.", "Imported %(total)s proxies: %(what)s.", result.total
        )
    what = gettext("%(new)s new, %(changed)s changed, %(unchanged)s unchanged, %(retired)s retired")
    return text % {**counts, "what": what % counts}


def notes(result: ImportResult, *, sync: bool) -> list[str]:
    """Return sentences about what else there is to know of an import; ``sync``: its option."""
    counts = {name: getattr(result, name) for name in NOTES}
    found = [NOTES[name] % {"count": count, "shown": f"{count:,}"} for name, count in counts.items() if count]
    if sync and result.bad:
        found.append(gettext("Nothing is retired, because lines were skipped."))
    return found
