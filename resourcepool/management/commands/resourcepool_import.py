"""``manage.py resourcepool_import``: imports proxies from a file."""

import json
import time
from dataclasses import asdict
from typing import Any

from django.utils.text import format_lazy

from resourcepool.events import localized
from resourcepool.exceptions import ResourcePoolError
from resourcepool.management.arguments import Argument, arg, flag
from resourcepool.management.base import OperatorCommand, actor
from resourcepool.proxies.importer import COLUMNS, ProxyImporter
from resourcepool.proxies.models import Proxy
from resourcepool.resources.import_plan import COMMITTING
from resourcepool.resources.import_result import BadLines, ImportResult, format_bad_lines, sentences
from resourcepool.translation import gettext as _, gettext_lazy


class Command(OperatorCommand):
    about = format_lazy(
        gettext_lazy(
            "Imports proxies from a UTF-8 file: CSV with a header (columns: {columns}; host and port, or"
            " url, are required; separated by , ; or tab), or one address per line"
            " (scheme://user:password@host:port, host:port or host:port:user:password; lines that begin"
            " with # are comments). A proxy is identified by scheme, host, port and username. Everything is"
            " imported in one transaction, or nothing. Repeating an import changes nothing."
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
            "update existing proxies from the columns in the file; an empty cell clears the field, but an"
            " empty password keeps the stored one"
        )
        sync = _(
            "retire proxies that are not in the file (held ones when their lease ends), and return retired"
            " ones that are in it to service; retires nothing if lines are skipped"
        )
        return [
            arg("file", _("the file; - reads standard input")),
            flag("--update", update),
            flag("--sync", sync),
            flag("--skip-bad", _("skip bad lines and import the rest")),
            flag("--dry-run", _("only show what would be done")),
            flag("--json", _("print the result as one JSON object")),
        ]

    def run(self, **options: Any) -> None:
        flags = {name: options[name] for name in ("update", "sync", "skip_bad", "dry_run")}
        progress = _Progress(self.stderr if options["verbosity"] else None)
        try:
            done = ProxyImporter().run(options["file"], **flags, actor=actor(), progress=progress)
        except KeyboardInterrupt:
            if progress.is_committing:
                self.interrupted = _(
                    "the import is all-or-nothing; run it again, existing proxies stay unchanged"
                )
            raise
        except ResourcePoolError as error:
            if options["json"]:
                self.stdout.write(_as_json(error))
            raise
        if not options["dry_run"]:
            self.interrupted = _("the import is complete")
        self._show(done, **options)

    def _show(self, done: ImportResult, *, sync: bool, dry_run: bool, **options: Any) -> None:
        if done.bad:
            self.stderr.write(localized(format_bad_lines(done.bad, done.bad_count)))
        if options["json"]:
            counts = {name: value for name, value in asdict(done).items() if name != "rows"}
            self.stdout.write(json.dumps({"ok": True, "dry_run": dry_run, "total": done.total, **counts}))
        elif options["verbosity"]:
            self.stdout.write("\n".join(sentences(Proxy, done, dry_run=dry_run, sync=sync)))


_PROGRESS = {
    "read": gettext_lazy("read %(count)s"),
    "compared": gettext_lazy("compared %(count)s"),
    "prepared": gettext_lazy("prepared %(count)s of %(count_all)s"),
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

    def __call__(self, step: str, done: int, total: int | None) -> None:
        self.is_committing = step == COMMITTING
        if self._stderr and time.monotonic() >= self._due:
            self._due = time.monotonic() + self.every
            text = _PROGRESS[step] % {"count": f"{done:,}", "count_all": f"{total or 0:,}"}
            self._stderr.write(text, style_func=str)


def _as_json(error: ResourcePoolError) -> str:
    result: dict[str, Any] = {"ok": False, "error": str(error)}
    if isinstance(error, BadLines):
        result |= {"bad": [asdict(line) for line in error.bad], "bad_count": error.bad_count}
    return json.dumps(result)
