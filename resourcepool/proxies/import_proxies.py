"""Imports proxies from a file, for the command, the admin and programs."""

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from django.db import connections

from resourcepool.db.retry import retrying
from resourcepool.encryption.traceback_cleanup import clear_frame_variables
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
from resourcepool.translation import gettext_noop as _


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
