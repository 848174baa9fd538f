"""``manage.py resourcepool_import``: proxies from a file."""

import json
import time
from dataclasses import asdict
from typing import Any

from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from resourcepool.events import localized
from resourcepool.exceptions import ResourcePoolError
from resourcepool.management.arguments import Argument, arg, flag
from resourcepool.management.base import OperatorCommand, actor
from resourcepool.proxies.formats import COLUMNS
from resourcepool.proxies.import_file import COMMITTING
from resourcepool.proxies.import_plan import ImportResult
from resourcepool.proxies.import_proxies import BadLines, format_bad_lines, import_proxies


class Command(OperatorCommand):
    about = format_lazy(
        gettext_lazy(
            "Imports proxies from a UTF-8 file: CSV with a header (columns: {columns}; host and port are needed, or a"
            " column url; separated by , ; or tab), or one address a line (scheme://user:password@host:port, host:port"
            " or host:port:user:password; lines that begin with # are comments). A proxy is known by scheme, host,"
            " port and username. All is imported in one transaction, or nothing. Doing it again changes nothing."
        ),
        columns=", ".join(COLUMNS),
    )

    example = (
        "manage.py resourcepool_import proxies.csv\nmanage.py resourcepool_import proxies.csv --sync --dry-run"
    )
    interrupted: Any = gettext_lazy("nothing was imported")
    requires_system_checks = "__all__"

    def arguments(self) -> list[Argument]:
        update = _(
            "give proxies that exist the values of the columns the file has; an empty cell empties the field,"
            " but an empty password leaves the stored one"
        )
        sync = _(
            "retire proxies that are not in the file (held ones when their lease ends), return retired ones"
            " that are in it to service; retires nothing while lines are skipped"
        )
        return [
            arg("file", _("the file; - reads standard input")),
            flag("--update", update),
            flag("--sync", sync),
            flag("--skip-bad", _("import the good lines in spite of bad ones")),
            flag("--dry-run", _("only say what would be done")),
            flag("--json", _("print the result as one JSON object")),
        ]

    def run(self, **options: Any) -> None:
        chosen = {name: options[name] for name in ("update", "sync", "skip_bad", "dry_run")}
        progress = _Progress(self.stderr if options["verbosity"] else None)
        try:
            done = import_proxies(options["file"], **chosen, actor=actor(), progress=progress)
        except KeyboardInterrupt:
            if progress.is_committing:
                again = _("all of it was imported, or nothing; import it again: what is there stays as it is")
                self.interrupted = again
            raise
        except ResourcePoolError as error:
            if options["json"]:
                self.stdout.write(_as_json(error))
            raise
        if not options["dry_run"]:
            self.interrupted = _("it was imported")
        self._show(done, **options)

    def _show(self, done: ImportResult, *, sync: bool, dry_run: bool, **options: Any) -> None:
        if done.bad:
            told = _("Skipped bad lines: %s") % f"{done.bad_count:,}"
            self.stderr.write(f"{told}\n{localized(format_bad_lines(done.bad, done.bad_count))}")
        if options["json"]:
            self.stdout.write(json.dumps({"ok": True, "dry_run": dry_run, "total": done.total, **asdict(done)}))
        elif options["verbosity"]:
            self.stdout.write("\n".join(_sentences(done, sync=sync, dry_run=dry_run)))


_PROGRESS = {
    "read": gettext_lazy("read %(count)s"),
    "compared": gettext_lazy("compared %(count)s"),
    "encrypted": gettext_lazy("encrypted %(count)s of %(count_all)s"),
    "stored": gettext_lazy("stored %(count)s of %(count_all)s"),
    "changed": gettext_lazy("changed %(count)s of %(count_all)s"),
    COMMITTING: gettext_lazy("committing"),
}


class _Progress:
    """Reports the progress of a long import on standard error."""

    every = 2.0  # seconds

    def __init__(self, stderr: Any) -> None:
        self._stderr, self._due = stderr, time.monotonic() + self.every
        self.is_committing = False

    def __call__(self, what: str, done: int, total: int | None) -> None:
        self.is_committing = what == COMMITTING
        if self._stderr and time.monotonic() >= self._due:
            self._due = time.monotonic() + self.every
            said = _PROGRESS[what] % {"count": f"{done:,}", "count_all": f"{total or 0:,}"}
            self._stderr.write(said, style_func=str)


def _sentences(done: ImportResult, *, sync: bool, dry_run: bool) -> list[str]:
    besides = {
        _("Back in service: %s of the changed."): done.returned,
        _("Unchanged though the file says otherwise: %s; --update takes its values."): done.differing,
        _("Retired and still so: %s; --sync returns them to service."): done.staying_retired,
        _("Exact copies of lines before: %s."): done.repeated,
    }
    said = [_main_sentence(done, dry_run=dry_run)]
    said += [text % f"{count:,}" for text, count in besides.items() if count]
    if sync and done.bad:
        said.append(_("Nothing was retired, because lines were skipped."))
    return said


def _main_sentence(done: ImportResult, *, dry_run: bool) -> str:
    counts = {name: f"{getattr(done, name):,}" for name in ("total", "new", "changed", "unchanged", "retired")}
    if dry_run:
        text = ngettext(
            "Would import %(total)s proxy: %(what)s.", "Would import %(total)s proxies: %(what)s.", done.total
        )
    else:
        text = ngettext(
            "Imported %(total)s proxy: %(what)s.", "Imported %(total)s proxies: %(what)s.", done.total
        )
    what = _("%(new)s new, %(changed)s changed, %(unchanged)s unchanged, %(retired)s retired")
    return text % {**counts, "what": what % counts}


def _as_json(error: ResourcePoolError) -> str:
    result: dict[str, Any] = {"ok": False, "error": str(error)}
    if isinstance(error, BadLines):
        result |= {"bad": [asdict(line) for line in error.bad], "bad_count": error.bad_count}
    return json.dumps(result)
