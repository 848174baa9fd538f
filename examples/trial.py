"""What the examples of tasks share: a database of their own, processes that can be killed, and waiting."""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

Child = subprocess.Popen[bytes]


@contextlib.contextmanager
def own_database() -> Iterator[None]:
    """Set Django up on a new database, which is removed afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DATABASE_URL"] = f"sqlite:///{folder}/example.db"
        set_up()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        yield


def set_up() -> None:
    """Set Django up in this process."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
    import django

    django.setup()


@contextlib.contextmanager
def processes(module: str, *names: str) -> Iterator[dict[str, Child]]:
    """Run ``python -m module name`` for each name, until the end of the block."""
    children = {name: subprocess.Popen([sys.executable, "-m", module, name]) for name in names}
    try:
        yield children
    finally:
        for child in children.values():
            child.terminate()
            child.wait()


def until(is_so: Callable[[], object], what: str) -> None:
    """Wait for it."""
    began = time.monotonic()
    while not is_so():
        if time.monotonic() - began > 60:
            sys.exit(f"waited a minute for {what}; is this machine very busy?")
        time.sleep(0.05)
