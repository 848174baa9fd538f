"""Every block of every page runs, in the order of the page, in a fresh project with the wheel.

A page that does not start its own project (``django-admin startproject``) finds one: ``mysite`` with the app ``shop``.
"""

import contextlib
import fcntl
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from zlib import crc32

import dj_database_url
import pytest
import pytest_django
from django.conf import settings
from django.db import connection

from tests.docs.blocks import Block, blocks, commands
from tests.docs.terminal import Terminal
from tests.servers import ServerMissing
from tests.servers.redis import redis_server
from tests.servers.server import free_port
from tests.spawned import ROOT

LEFT_OUT = {"docs/benchmarks.md"}  # its commands take minutes, in a checkout
ALL = {str(path.relative_to(ROOT)) for path in (*(ROOT / "docs").rglob("*.md"), ROOT / "README.md")} - LEFT_OUT
STARTS = sorted(name for name in ALL if "startproject" in (ROOT / name).read_text())
PAGES = sorted(ALL - {*STARTS})
HERE = Path(__file__).parent
REDIS = "redis://localhost:6379/0"  # on the pages; the tests have their own
WEB = "127.0.0.1:8000"
SETTINGS = """
INSTALLED_APPS += ["resourcepool", "rest_framework", "rest_framework.authtoken", "shop"]
ALLOWED_HOSTS = ["*"]
DATABASES["default"]["OPTIONS"] = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
}
REST_FRAMEWORK = {"DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.TokenAuthentication"]}
RESOURCEPOOL = {"SECRET_KEYS": ["4RRCGZ1FkX0bcdRfHPdpnxmSqZ4DhVPjd1pDS7l8OLg="]}
"""
NOT_CODE = ("text", "json", "", "yaml", "ini")


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what ``pip install`` unpacks."""
    folder = tmp_path_factory.mktemp("wheel")
    build = ["-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run([sys.executable, *build], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def environment(installed: Path) -> dict[str, str]:
    """Return what a reader's shell has: the wheel, and the programs of these tests."""
    return {
        "PYTHONPATH": os.pathsep.join([str(installed), "."]),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "DJANGO_SETTINGS_MODULE": "mysite.settings",
        "COLUMNS": "200",
        "NO_COLOR": "1",
    }


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory, installed: Path) -> Path:
    """The project that pages find, with migrations and an SQLite file that is migrated: made once, copied for each."""
    folder = tmp_path_factory.mktemp("project")
    start = [sys.executable, "-m", "django", "startproject", "mysite", str(folder)]
    subprocess.run(start, check=True)
    shutil.copytree(HERE / "project", folder, dirs_exist_ok=True)
    with (folder / "mysite" / "settings.py").open("a") as settings_file:
        settings_file.write(SETTINGS)
    for words in (("makemigrations", "shop"), ("migrate",)):
        command = [sys.executable, "manage.py", *words, "--verbosity", "0"]
        subprocess.run(command, cwd=folder, env={**os.environ, **environment(installed)}, check=True)
    return folder


@pytest.fixture
def database(django_db_blocker: pytest_django.DjangoDbBlocker) -> Iterator[str]:
    """The URL of an empty database; for SQLite "", because a new project brings its own."""
    if connection.vendor == "sqlite":
        yield ""
        return
    name = f"docs_{secrets.token_hex(4)}"
    with django_db_blocker.unblock(), contextlib.closing(connection.copy()) as session:
        with session.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
        yield urlsplit(settings.DATABASE_URL)._replace(path=f"/{name}").geturl()
        with session.cursor() as cursor:
            cursor.execute(f"DROP DATABASE {name}{' WITH (FORCE)' if session.vendor == 'postgresql' else ''}")


@pytest.fixture
def turn(name: str) -> Iterator[None]:
    """Two pages at a time: each starts several processes, whose leases are short so that a reader need not wait."""
    with (Path(tempfile.gettempdir()) / f"resourcepool-pages-{crc32(name.encode()) % 2}").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture
def terminal(tmp_path: Path, installed: Path, database: str, turn: None) -> Iterator[Terminal]:
    one = Terminal(tmp_path, environment(installed))
    one.places[WEB] = f"127.0.0.1:{free_port()}"
    yield one
    one.close()


@pytest.fixture
def redis() -> Iterator[str]:
    try:
        with redis_server() as url:
            yield url
    except ServerMissing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("name", STARTS)
def test_a_reader_gets_there_from_an_empty_folder(
    name: str, terminal: Terminal, database: str, request: pytest.FixtureRequest
) -> None:
    play(name, terminal, database, request)


@pytest.mark.parametrize("name", PAGES)
def test_every_block_of_a_page_runs(
    name: str, terminal: Terminal, database: str, request: pytest.FixtureRequest
) -> None:
    if any(is_run(block) for block in blocks(ROOT / name)):
        prepared(terminal, request.getfixturevalue("project"), database)
    play(name, terminal, database, request)


def play(name: str, terminal: Terminal, database: str, request: pytest.FixtureRequest) -> None:
    """Do what a reader of this page does."""
    page = blocks(ROOT / name)
    if any(REDIS in block.body for block in page):
        terminal.places[REDIS] = request.getfixturevalue("redis")
    for block in page:
        try:
            run(block, terminal, database)
        except AssertionError as error:
            raise AssertionError(f"{name}:{block.line}: {error}") from None


def is_run(block: Block) -> bool:
    """Whether a reader does something with a block, other than reading it."""
    is_code = block.language in ("console", "python", "pycon") or "setup" in block.marks
    return "not run" not in block.marks and bool(block.path or is_code)


def run(block: Block, terminal: Terminal, database: str) -> None:
    """Do what a reader does with a block."""
    for theirs, ours in terminal.places.items():
        block.body = block.body.replace(theirs, ours)
    if "not run" in block.marks:
        assert block.marks["not run"], "say why it is not run"
    elif block.path:
        terminal.write(block.path, block.body, is_appended=block.is_appended)
        if block.path == "mysite/settings.py" and database:
            terminal.write(block.path, database_settings(database), is_appended=True)
    elif block.language == "console":
        for command, output in commands(block.body):
            terminal.run(command, output, block.marks)
            if "startproject" in command:
                on_database(terminal, command, database)
    else:
        run_other(block, terminal)


def run_other(block: Block, terminal: Terminal) -> None:
    if "Ctrl-C" in block.marks:
        terminal.interrupt()
    elif "output" in block.marks:
        terminal.expect(block.body.splitlines())
    elif block.language == "python" or "setup" in block.marks:
        terminal.execute(block.body.strip())
    elif block.language == "pycon":
        terminal.execute(
            "".join(f"{line[4:]}\n" for line in block.body.splitlines() if line[:3] in (">>>", "..."))
        )
    else:
        assert block.language in NOT_CODE or block.language.startswith("{"), block.language


def on_database(terminal: Terminal, command: str, database: str) -> None:
    """Let a new project use the database of the test."""
    if database:
        folder = "." if command.endswith(" .") else command.rsplit(maxsplit=1)[-1]
        terminal.write(f"{folder}/mysite/settings.py", database_settings(database), is_appended=True)


def database_settings(url: str) -> str:
    parsed = {**dj_database_url.parse(url), "CONN_MAX_AGE": 60}
    return f"\nDATABASES = {{'default': {parsed!r}}}\n"


def prepared(terminal: Terminal, project: Path, database: str) -> None:
    """Give the reader a project with the app ``shop``."""
    shutil.copytree(project, terminal.folder, dirs_exist_ok=True)
    if database:
        terminal.write("mysite/settings.py", database_settings(database), is_appended=True)
        terminal.run("python manage.py migrate --verbosity 0", [], {})
