"""The demo project: its environment variables, and its landing page."""

import os
import re
import runpy
import shutil
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from project.databases import database
from project.environment import env_flag, env_list
from tests.eventually import eventually
from tests.spawned import ROOT


@pytest.mark.django_db
def test_the_landing_page_says_where_to_go_and_needs_nothing_inline(client: Client) -> None:
    page = client.get("/").content.decode()
    assert 'href="/admin/"' in page
    assert not re.search(r"<script(?! src)|<style| style=| on\w+=|https?://", page)


@pytest.mark.django_db
def test_the_admin_asks_who_you_are(client: Client) -> None:
    assert client.get("/admin/").headers["Location"].startswith("/admin/login/")


def test_closed_by_default(tmp_path: Path) -> None:
    program = "from project.settings import *; print(DEBUG, ALLOWED_HOSTS, DATABASES['default']['NAME'])"
    environment = {"PATH": os.environ["PATH"], "VAR_DIR": str(tmp_path)}
    shown = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert shown.stdout == f"False ['localhost', '127.0.0.1', '[::1]'] {tmp_path}/db.sqlite3\n"


def test_make_run_serves_the_stylesheets_also_without_debug(tmp_path: Path) -> None:
    (command,) = re.findall(r"manage\.py (runserver.*?)  #", (ROOT / "Makefile").read_text())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    environment = {"PATH": os.environ["PATH"], "VAR_DIR": str(tmp_path), "DEBUG": "0"}
    with subprocess.Popen(
        [sys.executable, "manage.py", *command.split(), "--noreload", "--skip-checks", address],
        cwd=ROOT,
        env=environment,
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            for name in ("admin/css/base.css", "resourcepool/dashboard.css"):
                url = f"http://{address}/static/{name}"
                assert eventually(lambda url=url: fetched(url)).startswith(b"text/css")
        finally:
            server.terminate()


def fetched(url: str) -> bytes:
    """Return the type and the content of a page; b"" while nobody listens."""
    try:
        with urllib.request.urlopen(url) as page:
            return f"{page.headers['Content-Type']} {page.read()}".encode()
    except urllib.error.HTTPError as error:
        return str(error).encode()
    except OSError:
        return b""


def in_project(folder: Path, program: str, umask: int = 0o022, **environment: str) -> str:
    """Return what a program prints whose settings are made of this environment alone."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "VAR_DIR": str(folder), **environment},
        capture_output=True,
        text=True,
        check=True,
        umask=umask,
    )
    return done.stdout + done.stderr


CHECK = """
import sys
from django.core.management import execute_from_command_line
import os; os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
execute_from_command_line(["manage.py", "check", "--deploy", "--fail-level", "DEBUG"])
"""
REDIRECTED, SERVED = "301 https://localhost/ -", "200 - max-age=86400"


def test_with_https_the_check_of_a_deployment_finds_nothing(tmp_path: Path) -> None:
    assert "no issues (2 silenced)" in in_project(tmp_path, CHECK, HTTPS="1")


OF_HTTPS = (
    "SECURE_SSL_REDIRECT",
    "SECURE_HSTS_SECONDS",
    "SECURE_PROXY_SSL_HEADER",
    "SESSION_COOKIE_SECURE",
    "CSRF_COOKIE_SECURE",
)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("environment", "expected", "is_secure"),
    [
        ({}, ["200 - -"] * 3, False),
        ({"FORWARDED_PROTO": "1"}, ["200 - -"] * 3, False),
        ({"HTTPS": "1"}, [REDIRECTED] * 3, True),  # what anybody may send counts for nothing
        ({"HTTPS": "1", "FORWARDED_PROTO": "1"}, [REDIRECTED, SERVED, REDIRECTED], True),
    ],
)
def test_with_https_nothing_is_served_over_http(
    environment: dict[str, str],
    expected: list[str],
    is_secure: bool,
    settings: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"VAR_DIR": str(tmp_path), **environment}.items():
        monkeypatch.setenv(name, value)
    made = runpy.run_path(str(Path(ROOT, "project", "settings.py")))
    for name in OF_HTTPS:
        setattr(settings, name, made[name])
    answers = [
        Client(headers=headers).get("/", HTTP_HOST="localhost")
        for headers in ({}, {"X-Forwarded-Proto": "https"}, {"X-Forwarded-Proto": "http"})
    ]
    assert [
        f"{one.status_code} {one.get('Location', '-')} {one.get('Strict-Transport-Security', '-')}"
        for one in answers
    ] == expected
    assert settings.SESSION_COOKIE_SECURE == settings.CSRF_COOKIE_SECURE == is_secure


@pytest.mark.parametrize(
    "environment", [{}, {"SECRET_KEY": "x" * 50, "RESOURCEPOOL_SECRET_KEYS": "x", "DATABASE_URL": ""}]
)
def test_what_it_keeps_is_in_a_folder_for_its_owner_alone(tmp_path: Path, environment: dict[str, str]) -> None:
    folder = tmp_path / "new" / "var"
    in_project(folder, "import project.settings", umask=0, **environment)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_of_its_own_that_others_may_look_into_is_closed_and_any_other_left_alone(
    tmp_path: Path,
) -> None:
    copy, shared = tmp_path / "copy", tmp_path / "shared"
    shutil.copytree(ROOT / "project", copy / "project")
    for folder in (copy / "var", shared):
        folder.mkdir()
        folder.chmod(0o755)
    for chosen in ("", str(shared)):
        environment = {"PATH": os.environ["PATH"], "VAR_DIR": chosen}
        subprocess.run([sys.executable, "-c", "import project.settings"], cwd=copy, env=environment, check=True)
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (copy / "var", shared)] == [0o700, 0o755]


def test_under_asgi_no_session_is_kept_for_a_thread_that_has_ended(tmp_path: Path) -> None:
    program = "from project.asgi import connections as all; print(all['default'].settings_dict['CONN_MAX_AGE'])"
    assert in_project(tmp_path, program) == "0\n"


def test_a_web_server_of_another_user_is_given_the_static_files_elsewhere(tmp_path: Path) -> None:
    program = "from project.settings import STATIC_ROOT; print(STATIC_ROOT)"
    assert in_project(tmp_path, program) == f"{tmp_path}/static\n"
    assert in_project(tmp_path, program, STATIC_ROOT="/srv/static") == "/srv/static\n"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mysql://me:p%40ss@db.example:3307/pool", {"HOST": "db.example", "PORT": 3307, "PASSWORD": "p@ss"}),
        ("mysql://me@/pool?unix_socket=/run/m.sock", {"NAME": "pool", "USER": "me", "HOST": ""}),
        ("postgres://me:pw@db.example/pool", {"ENGINE": "django.db.backends.postgresql", "NAME": "pool"}),
        ("postgresql://me:pw@db.example/pool", {"ENGINE": "django.db.backends.postgresql"}),
    ],
)
def test_a_database_url(url: str, expected: dict[str, object]) -> None:
    assert database(url).items() >= expected.items()


def test_each_database_gets_the_options_it_needs_and_the_url_wins(tmp_path: Path) -> None:
    sqlite = database(f"sqlite:///{tmp_path}/new/pool.sqlite3")
    assert sqlite["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert sqlite["TEST"]["NAME"] == f"{tmp_path}/new/test_pool.sqlite3"
    mysql = database("mysql://me@/pool?unix_socket=/run/m.sock&charset=latin1")["OPTIONS"]
    assert mysql["isolation_level"] == "read committed"
    assert (mysql["unix_socket"], mysql["charset"]) == ("/run/m.sock", "latin1")
    assert "lock_timeout" in database("postgres://me@h/pool")["OPTIONS"]["options"]


def test_flags_and_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWITCH", "yes")
    assert env_flag("SWITCH")
    monkeypatch.setenv("SWITCH", "perhaps")
    with pytest.raises(ImproperlyConfigured, match="SWITCH='perhaps'"):
        env_flag("SWITCH")
    assert not env_flag("NO_SUCH_SWITCH")
    assert env_list("NO_SUCH_LIST", " a, b,,") == ["a", "b"]
