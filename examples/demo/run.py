"""Crawler processes share eight forward proxies, some are killed in mid-work, and the target site is the witness.

Needs no server: an SQLite file, proxies, target site and crawlers live in a temporary folder and on loopback
addresses, and nothing of it is left at the end.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import django
from django.core.management import CommandError, call_command
from rich.console import Console
from rich.markup import escape

from .processes import DemoError, Processes, exit_on_sigterm

ON_SHOW = 5  # crawlers that go on while the admin is served
T = TypeVar("T")


def main() -> int:
    arguments = parse()
    console = Console(highlight=False, soft_wrap=True)
    exit_on_sigterm()
    folder = Path(tempfile.mkdtemp(prefix="resourcepool-demo-"))
    try:
        return run(console, folder, arguments)
    except (DemoError, CommandError) as error:
        console.print(f"\n[bold red]The demo stopped[/]: {escape(str(error))}.")
        return 1
    except KeyboardInterrupt:
        console.print("\nStopped.")
        return 130
    finally:
        if arguments.keep:
            console.print(f"Kept: {folder} (shop.jsonl is the site's log)")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="how long to crawl: 15 to 240 (default: 20)")
    parser.add_argument("--keep", action="store_true", help="keep the site's log, the database and all output")
    parser.add_argument(
        "--broken",
        action="store_true",
        help="the crawlers ignore leases and take any proxy at random; to see that the witness notices (exit 1)",
    )
    arguments = parser.parse_args()
    if not 15 <= arguments.seconds <= 240:
        parser.error(f"--seconds: {arguments.seconds:g} is not between 15 and 240")
    return arguments


def run(console: Console, folder: Path, arguments: argparse.Namespace) -> int:
    """Set the stage, crawl, ask the witness. Returns the exit code."""
    use_own_settings(folder)
    from .admin import serve_admin
    from .display import Display
    from .fleet import SIZE, Fleet
    from .scene import Scene
    from .summary import print_summary
    from .witness import examine

    if arguments.broken:
        console.print("Broken on purpose: the crawlers ignore leases and take any proxy at random.")
    with Processes(folder) as processes:
        set_the_stage(console, folder, processes)
        log, port_file = folder / "shop.jsonl", folder / "shop.port"
        processes.start("shop", "examples.demo.shop", "--log", str(log), "--port-file", str(port_file))
        fleet = Fleet(processes, processes.wait_for_port(port_file), lawless=arguments.broken)
        step(console, f"{SIZE} crawler processes started", lambda: fleet.hire(SIZE))
        with closing(Scene(log)) as scene, Display(console, arguments.seconds) as display:
            fleet.work(scene, display, arguments.seconds)
        fleet.stop()
        report = examine(log.read_text(encoding="utf-8").splitlines())
        print_summary(console, report)
        if not report.problems() and sys.stdin.isatty() and sys.stdout.isatty():
            fleet.hire(ON_SHOW)
            serve_admin(console, processes)
    return 1 if report.problems() else 0


def use_own_settings(folder: Path) -> None:
    """The project's settings, with all it writes in `folder`, whatever the environment says; children inherit it."""
    for name in ("ALLOWED_HOSTS", "CELERY_BROKER_URL", "HTTPS", "RESOURCEPOOL_SECRET_KEYS"):
        os.environ.pop(name, None)
    os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
    os.environ["DATABASE_URL"] = f"sqlite:///{folder / 'demo.sqlite3'}"
    os.environ["VAR_DIR"] = str(folder)
    django.setup()


def set_the_stage(console: Console, folder: Path, processes: Processes) -> None:
    """A database, eight running proxies, and the pool loaded from a CSV file."""
    from django.db import connection

    from .models import Page
    from .proxies import start_proxies, write_csv

    step(console, "an SQLite file migrated", lambda: call_command("migrate", verbosity=0))
    with connection.schema_editor() as editor:
        editor.create_model(Page)
    rows = step(console, "8 forward proxies started", lambda: start_proxies(processes))
    file = folder / "proxies.csv"
    write_csv(rows, file)
    console.print("  $ manage.py resourcepool_import proxies.csv")
    call_command("resourcepool_import", str(file))


def step(console: Console, what: str, action: Callable[[], T]) -> T:
    began = time.monotonic()
    result = action()
    console.print(f"  {what} ({time.monotonic() - began:.1f} s)")
    return result
