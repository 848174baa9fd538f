"""``manage.py resourcepool_import``: proxies from a file."""

import json
import time
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from resourcepool.exceptions import ResourcePoolError
from resourcepool.resources.importing.formats import COLUMNS
from resourcepool.resources.importing.proxies import BadLines, Imported, import_proxies, listed

INTERRUPTED = 130  # what shells call a process that Ctrl-C has ended


class Command(BaseCommand):
    help = (
        "Imports proxies from a UTF-8 file: CSV with a header (columns: "
        f"{', '.join(COLUMNS)}; host and port are needed, or a column url; separated by , ; or tab), or one "
        "address a line (scheme://user:password@host:port, host:port or host:port:user:password; lines that "
        "begin with # are comments). A proxy is known by scheme, host, port and username. All is imported in "
        "one transaction, or nothing. Doing it again changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="the file; - reads standard input")
        parser.add_argument(
            "--update",
            action="store_true",
            help="give proxies that exist the values of the columns the file has; an empty cell empties the field,"
            " but an empty password leaves the stored one",
        )
        parser.add_argument(
            "--sync",
            action="store_true",
            help="retire proxies that are not in the file (held ones when their lease ends), return retired ones"
            " that are in it to service; retires nothing while lines are skipped",
        )
        parser.add_argument(
            "--skip-bad", action="store_true", help="import the good lines in spite of bad ones"
        )
        parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
        parser.add_argument("--json", action="store_true", help="print the result as one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        chosen = {name: options[name] for name in ("update", "sync", "skip_bad", "dry_run")}
        tell = _Progress(self.stderr if options["verbosity"] else None)
        try:
            done = import_proxies(options["file"], **chosen, tell=tell)
        except ResourcePoolError as error:
            if options["json"]:
                self.stdout.write(_as_json(error))
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            raise CommandError("interrupted: nothing was imported", returncode=INTERRUPTED) from None
        self._show(done, **options)

    def _show(self, done: Imported, *, sync: bool, dry_run: bool, **options: Any) -> None:
        if done.bad:
            self.stderr.write(f"Skipped bad lines: {done.bad_count:,}\n{listed(done.bad, done.bad_count)}")
        if options["json"]:
            self.stdout.write(json.dumps({"ok": True, "dry_run": dry_run, "total": done.total, **asdict(done)}))
        elif options["verbosity"]:
            self.stdout.write("\n".join(_sentences(done, sync=sync, dry_run=dry_run)))


class _Progress:
    """Says on standard error how far an import is, if it takes long."""

    every = 2.0  # seconds

    def __init__(self, stderr: Any) -> None:
        self._stderr, self._due = stderr, time.monotonic() + self.every

    def __call__(self, what: str, done: int, total: int | None) -> None:
        if self._stderr and time.monotonic() >= self._due:
            self._due = time.monotonic() + self.every
            of = "" if total is None else f" of {total:,}"
            self._stderr.write(f"{what} {done:,}{of}", style_func=str)


def _sentences(done: Imported, *, sync: bool, dry_run: bool) -> list[str]:
    would = "Would import" if dry_run else "Imported"
    proxies = "proxy" if done.total == 1 else "proxies"
    numbers = (
        f"{done.new:,} new, {done.changed:,} changed, {done.unchanged:,} unchanged, {done.retired:,} retired"
    )
    said = [f"{would} {done.total:,} {proxies}: {numbers}."]
    if done.returned:
        said.append(f"Back in service: {done.returned:,} of the changed.")
    if done.differing:
        said.append(f"Unchanged though the file says otherwise: {done.differing:,}; --update takes its values.")
    if done.staying_retired:
        said.append(f"Retired and still so: {done.staying_retired:,}; --sync returns them to service.")
    if sync and done.bad:
        said.append("Nothing was retired, because lines were skipped.")
    return said


def _as_json(error: ResourcePoolError) -> str:
    shown: dict[str, Any] = {"ok": False, "error": str(error)}
    if isinstance(error, BadLines):
        shown |= {"bad": [asdict(line) for line in error.bad], "bad_count": error.bad_count}
    return json.dumps(shown)
