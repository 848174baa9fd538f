"""``make wheel``: builds the wheel into dist/, checks its files, and installs it with each extra.

Each extra gets an environment of its own, with the versions of requirements.txt from the package index, and is used
there: settings that need it are accepted. In the environment without extras the same settings must be refused.
"""

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "resourcepool"
MADE = {"__pycache__", ".DS_Store"}
NEEDED = (
    "locale/zh_Hans/LC_MESSAGES/django.mo",
    "management/commands/resourcepool_status.py",
    "migrations/0001_initial.py",
    "py.typed",
    "static/resourcepool/dashboard.css",
    "static/resourcepool/charts.js",
    "static/resourcepool/dashboard.js",
    "static/resourcepool/vendor/uPlot.LICENSE.txt",
    "static/resourcepool/vendor/uPlot.js",
    "templates/resourcepool/dashboard/page.html",
)

SETTINGS = """
SECRET_KEY = "x"
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "resourcepool", *{apps!r}]
DATABASES = {{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}}}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
RESOURCEPOOL = {options!r}
"""
USE = """
import importlib, sys
from django.core.management import call_command
import django
django.setup()
for name in sys.argv[1:]:
    importlib.import_module(name)
call_command("check", fail_level="WARNING")
call_command("migrate", verbosity=0)
"""


class Extra(NamedTuple):
    """How an extra is used: modules to import, apps to install, and settings."""

    modules: tuple[str, ...] = ()
    apps: tuple[str, ...] = ()
    options: Mapping[str, object] = {}


EXTRAS = {
    "mysql": Extra(("MySQLdb",)),
    "postgres": Extra(("psycopg",)),
    "checks": Extra(options={"CHECKS": {"resourcepool.Proxy": {"url": "https://example.com/"}}}),
    "celery": Extra(
        ("resourcepool.tasks", "resourcepool.contrib.celery_timers.tasks", "resourcepool.celery_beat"),
        ("django_celery_beat", "resourcepool.contrib.celery_timers"),
        {"HINTS": "amqp://localhost"},
    ),
    "rest": Extra(("resourcepool.rest.urls",), ("rest_framework",)),
    "openapi": Extra(("resourcepool.rest.schema",), ("rest_framework", "drf_spectacular")),
    "redis": Extra(options={"HINTS": "redis://localhost"}),
}
OF_THE_REPOSITORY = {"bench", "demo", "dev", "docs"}  # extras for work on this package


def build(folder: Path) -> Path:
    """Build the wheel into ``folder``; return its path."""
    for old in folder.glob("*.whl"):
        old.unlink()
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def file_problems(wheel: Path) -> Iterator[str]:
    """Yield what is missing in the wheel, and what should not be there."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    tracked = {
        str(path.relative_to(ROOT))
        for path in PACKAGE.rglob("*")
        if path.is_file() and not MADE.intersection(path.parts)
    }
    for name in sorted((tracked | {f"resourcepool/{name}" for name in NEEDED}) - names):
        yield f"{name} is missing"
    if not any(name.endswith(".dist-info/licenses/LICENSE") for name in names):
        yield "the licence is missing"
    for name in sorted(names - tracked):
        if not name.partition("/")[0].endswith(".dist-info"):
            yield f"{name} does not belong there"


def install(wheel: Path, extra: str, folder: Path) -> Path:
    """Make an environment with the wheel and this extra; return its Python."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    name = f"{wheel}[{extra}]" if extra else str(wheel)
    locked = folder / "locked.txt"
    versions = [line.split(" ")[0] for line in (ROOT / "requirements.txt").read_text().splitlines()]
    locked.write_text("\n".join(version for version in versions if "==" in version and version[0] not in "#-"))
    command = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", "-c", str(locked)]
    subprocess.run([*command, name], check=True)
    return python


def use(python: Path, extra: Extra) -> str:
    """Use an extra in a new project, as ``Extra`` says; return the error, "" if there is none."""
    with tempfile.TemporaryDirectory() as project:
        text = SETTINGS.format(apps=extra.apps, options=dict(extra.options))
        Path(project, "settings_of_this.py").write_text(text)
        environment = {"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "settings_of_this"}
        done = subprocess.run(
            [str(python), "-c", USE, *extra.modules],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stderr if done.returncode else ""


def extra_problems(wheel: Path) -> Iterator[str]:
    """Yield what is wrong with the extras when they are installed."""
    with tempfile.TemporaryDirectory() as folder:
        bare = install(wheel, "", Path(folder, "bare"))
        if error := use(bare, Extra()):
            yield f"without extras: {error}"
        for name, extra in EXTRAS.items():
            if not use(bare, extra):
                yield f"[{name}]: its use does not need it"
            if error := use(install(wheel, name, Path(folder, name)), extra):
                yield f"[{name}]: {error}"
            print(f"installed with [{name}]", flush=True)


def main() -> int:
    """Build and check; return the exit code."""
    wheel = build(ROOT / "dist")
    problems = [*file_problems(wheel), *extra_problems(wheel)]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{'FAILED' if problems else 'ok'}: {wheel.relative_to(ROOT)}")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
