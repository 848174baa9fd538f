"""Imports proxies from a file: what the command, the admin and programs call."""

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from django.db import connections
from django.utils.translation import gettext_noop as _

from resourcepool.database.retry import retrying
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


class BadLines(ImportRefused):
    """The file has bad lines; ``bad`` are the first of them, ``bad_count`` is how many there are."""

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
    """Import the file ``name`` ("-": standard input) in one transaction; returns what was done.

    Args:
        update: proxies that exist get the values of the columns the file has. An empty password leaves the
            stored one as it is.
        sync: proxies that are not in the file are retired (held ones after their lease), retired ones that are in
            it return to service. While lines are skipped nothing is retired.
        skip_bad: import the good lines of a file that has bad ones.
        dry_run: only find out what would be done.
        tell: called with the progress, see ``ProgressCallback``.
        stream: where the file's bytes are read from, if not from the file of this name.
        actor: the operator who does it, for the history of what is retired or returned.
        compares_passwords: False for those who may not know the stored ones; see ``make_plan``.

    Raises:
        BadLines: the file has bad lines; nothing was imported.
        ImportRefused: the file cannot be used at all; says why. Nothing was imported.
        DatabaseUnavailable, NotMigrated, SecretUnreadable: nothing was imported either.
    """
    using = Proxy.pool.using
    try:
        reading = read(read_lines(name, stream), progress)
        if reading.is_stopped or (reading.bad and not (skip_bad and reading.rows)):
            raise BadLines(reading)
    except ImportRefused as error:
        error.args = (sentence_for("about", name=display_name(name), why=str(error)),)
        raise
    wishes = {"update": update, "sync": sync, "compare_passwords": compare_passwords}
    plan = retrying(connections[using], lambda: make_plan(reading, using, progress=progress, **wishes))
    if not dry_run:
        plan.counts.retired = apply_plan(
            plan, using, sentence_for("not_in_file", file=Path(display_name(name)).name), progress, actor
        )
    return plan.counts


def format_bad_lines(bad: Sequence[BadLine], count: int) -> Sentence:
    """Return the bad lines for people: a line each, and how many more there are."""
    more = [Sentence(_("and %(count)s more"), count=f"{count - len(bad):,}")] if count > len(bad) else []
    return Sentence("%(lines)s", lines=(*map(str, bad), *more))
